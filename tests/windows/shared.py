"""The suites of other folders that run on Windows too, and which of their tests do not hold there, and why."""

from __future__ import annotations

SUITES = """
    tests/corpus
    tests/property
    tests/oracle/test_arguments.py
    tests/oracle/test_decimal_format.py
    tests/oracle/test_rules.py
    tests/oracle/test_views.py
    tests/oracle/test_vmid.py
    tests/integration/modules/native/test_class_histogram.py
    tests/integration/modules/native/test_delayed_call.py
    tests/integration/modules/test_identity.py
    tests/integration/modules/test_jstat_views.py
    tests/integration/modules/test_reader_mapping.py
    tests/integration/modules/test_wire_text.py
    tests/integration/modules/tool/test_environment.py
    tests/integration/modules/tool/test_locks.py
    tests/unit/test_agents_options.py
    tests/unit/test_cli_table.py
    tests/unit/test_exact_updates.py
    tests/unit/test_flags.py
    tests/unit/test_heap_commands.py
    tests/unit/test_identity.py
    tests/unit/test_instruments.py
    tests/unit/test_jstat_arguments.py
    tests/unit/test_jstat_views.py
    tests/unit/test_labels.py
    tests/unit/test_own_threads.py
    tests/unit/native/test_class_histogram.py
    tests/unit/native/test_gc_probe.py
    tests/unit/native/test_dispatch.py
    tests/unit/native/test_histogram.py
    tests/unit/native/test_delayed_call.py
    tests/unit/native/test_locks.py
    tests/unit/native/test_mirror.py
    tests/unit/native/test_stack_snapshot.py
    tests/unit/native/test_slots.py
    tests/unit/native/test_thread_states.py
    tests/unit/native/test_tally.py
    tests/unit/native/test_gc_objects.py
    tests/unit/test_reader_mapping.py
    tests/unit/test_region.py
    tests/unit/test_registry.py
    tests/unit/tool/test_arguments.py
    tests/unit/tool/test_capabilities.py
    tests/unit/tool/test_environment.py
    tests/unit/tool/test_extensions.py
    tests/unit/tool/test_host.py
    tests/unit/tool/test_methods.py
    tests/unit/tool/test_raw_monitors.py
    tests/unit/tool/test_stacks.py
    tests/unit/tool/test_table.py
    tests/unit/test_wire_decode.py
    tests/unit/test_wire_encode.py
    tests/unit/test_wire_scan.py
    tests/unit/test_wire_text.py
""".split()

_MAPPED = "there a region's file is written through its mapping (tests/windows)"
_SIGNALS = "Windows has no such signals"
_STARTS = "it starts a program of its own, whose modules are those of Linux"
_FORKS = "Windows does not fork"
_FINDERS = "the modules of this python's standard library are an older release's, whose finder has a bug"
_MODES = "Windows has no file modes"

# The beginning of a test's id, and why it is skipped.
SKIPPED = {
    "tests/unit/test_exact_updates.py::test_a_signal_handler": _SIGNALS,
    "tests/unit/test_flags.py::test_an_argument_file_that_cannot_be_read": "Windows' errors have other words",
    "tests/unit/test_flags.py::test_the_help_and_the_page": "the page shows paths of Linux",
    "tests/integration/modules/test_identity.py::test_a_script": "a path there has backslashes",
    "tests/integration/modules/test_identity.py::test_start_ticks": "Windows has no /proc",
    "tests/unit/test_identity.py::test_without_proc": "Windows has no /proc",
    "tests/unit/test_instruments.py::test_a_module_that_fails_or_is_not_there": _FINDERS,
    "tests/unit/test_instruments.py::test_an_action_comes_after": _FINDERS,
    "tests/unit/test_instruments.py::test_looking_for_a_spec": _FINDERS,
    "tests/integration/modules/test_jstat_views.py::test_a_sample_imports_nothing_heavy": _STARTS,
    "tests/unit/native/test_locks.py::test_after_a_fork": _FORKS,
    "tests/unit/native/test_mirror.py::test_a_file_cut_short": _MAPPED,
    "tests/unit/native/test_mirror.py::test_a_file_put_in_its_place": _MAPPED,
    "tests/unit/native/test_mirror.py::test_a_mapped_file": _MAPPED,
    "tests/unit/native/test_mirror.py::test_a_saved_file_is_private": _MODES,
    "tests/unit/native/test_mirror.py::test_new_entries_come_whole": _MAPPED,
    "tests/unit/native/test_mirror.py::test_stopping_makes_a_last_copy": _MAPPED,
    "tests/unit/native/test_mirror.py::test_the_clock_moves": _MAPPED,
    "tests/unit/native/test_mirror.py::test_the_prologue_follows": _MAPPED,
    "tests/unit/native/test_mirror.py::test_the_thread_writes_what_changed": _MAPPED,
    "tests/unit/native/test_mirror.py::test_what_cannot_be_mapped": _MAPPED,
    "tests/unit/test_reader_mapping.py::test_a_later_write_is_seen": "there nobody writes to a file that is mapped",
    "tests/integration/modules/test_reader_mapping.py::test_the_guard_works_in_a_forked_child": _FORKS,
    "tests/unit/test_reader_mapping.py::test_truncation_with_sigbus_blocked": _SIGNALS,
    "tests/unit/test_reader_mapping.py::test_what_cannot_be_mapped": "Windows opens no directory",
    "tests/unit/test_region.py::test_a_full_region_grows": "a file that is mapped cannot grow there",
    "tests/unit/test_region.py::test_a_signal_handler": _SIGNALS,
    "tests/unit/test_region.py::test_the_time_of_the_last_entry": "the clock there ticks each ms or slower",
    "tests/unit/test_registry.py::test_a_histogram_is_shown_whole": "there a region has room for all",
    "tests/unit/tool/test_arguments.py::test_an_agent_s_name": "native agents need the C part",
    "tests/unit/tool/test_arguments.py::test_each_argument_that_is_wrong_has_its_error[get_thread_cpu_time]": (
        "Windows tells no thread another's CPU time"
    ),
    "tests/unit/tool/test_arguments.py::test_good_arguments_give_no_error_that_the_row_has_not[get_thread_cpu_time]": (
        "Windows tells no thread another's CPU time"
    ),
    "tests/unit/tool/test_capabilities.py::test_what_is_found_here": "the page has Linux's mechanisms",
    "tests/integration/modules/tool/test_environment.py::test_a_child_can_use": _FORKS,
    "tests/integration/modules/tool/test_environment.py::test_after_a_fork": _FORKS,
    "tests/integration/modules/test_wire_text.py::test_showing_imports_no_enum": "Windows' own start imports enum",
}


def reason(test: str) -> str:
    """Why the test of this id is skipped; "": it is not."""
    return next((why for beginning, why in SKIPPED.items() if test.startswith(beginning)), "")


if __name__ == "__main__":
    print(*SUITES)
