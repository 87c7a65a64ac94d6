"""vmscope.log: one printable line for each record, and of repeats a few."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from vmscope import log
from vmscope.counters.kinds import Counter
from vmscope.counters.registry import Registry
from vmscope.tool import Event, agent_errors
from vmscope.tool.host import Host

BAD = "one\nERROR root: two\x1b[2J\r\u202e\x9b"
SHOWN = "one\\nERROR root: two\\x1b[2J\\r\\u202e\\x9b"


class Clock:
    """In the place of time.monotonic."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(log, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What a program's handler has written."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.getLogger("vmscope").addHandler(handler)
    yield stream
    logging.getLogger("vmscope").removeHandler(handler)


# -- repeats --------------------------------------------------------------------------------------


def test_the_first_ten_then_one_a_minute(clock: Clock) -> None:
    repeats = log.Repeats()
    assert [repeats.admit("a") for _ in range(12)] == [0] * 10 + [None] * 2
    assert repeats.admit("b") == 0, "another kind"
    clock.now += 59
    assert repeats.admit("a") is None
    assert repeats.suppressed() == 3
    clock.now += 1
    assert repeats.admit("a") == 3
    assert repeats.admit("a") is None
    clock.now += 3600
    assert [repeats.admit("a") for _ in range(11)] == [1, *[0] * 9, None], "ten at most are saved up"


def test_kinds_without_a_bound_share_one_allowance(clock: Clock) -> None:
    repeats = log.Repeats()
    admitted = [repeats.admit(str(number)) for number in range(10_000)]
    assert sum(each is not None for each in admitted) == 64 + 10
    assert repeats.suppressed() == 10_000 - 74
    assert len(repeats._kinds) == 65
    clock.now += log.FIRST * log.AGAIN + 1
    assert [repeats.admit(f"later {number}") for number in range(64)] == [0] * 64, "the old ones are forgotten"
    assert len(repeats._kinds) <= 65


def test_a_record_tells_of_those_that_were_not_logged(clock: Clock, written: io.StringIO) -> None:
    for _ in range(10_000):
        log.say("error", "agent %s: no", "x", name=log.TOOL)
    assert written.getvalue() == "ERROR vmscope.tool: agent x: no\n" * 10
    clock.now += 60
    log.say("error", "agent %s: no", "x", name=log.TOOL)
    last = written.getvalue().splitlines()[-1]
    assert last == "ERROR vmscope.tool: agent x: no (9990 more like this were not logged)"


# -- what a record says ---------------------------------------------------------------------------


def test_a_record_is_one_printable_line(written: io.StringIO) -> None:
    log.say("warning", "%s has %d of %s", BAD, 3, Exception(BAD))
    assert written.getvalue() == f"WARNING vmscope: {SHOWN} has 3 of {SHOWN}\n"
    log.say("warning", "%s", "x" * 100_000)
    assert len(written.getvalue().splitlines()[-1]) < 1100


def test_a_record_names_the_place_of_its_call(caplog: pytest.LogCaptureFixture) -> None:
    def wrapper() -> None:
        log.say("warning", "within", depth=2)

    log.say("warning", "here")
    wrapper()
    agent_errors.report("x", "thread", "raised", error=ValueError())
    assert [(each.funcName, each.getMessage()) for each in caplog.records] == [
        ("test_a_record_names_the_place_of_its_call", message) for message in ("here", "within", "agent x: raised")
    ]


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except BaseException as caught:
        return caught


def test_a_plain_error_is_the_program_s_to_format(caplog: pytest.LogCaptureFixture) -> None:
    error = raised(ValueError("plain"), raised(KeyError("é")))
    log.say("error", "no", error=error)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert "\nValueError: plain" in caplog.text


def noted(error: BaseException) -> BaseException:
    error.add_note(BAD)
    return error


class Silent(Exception):
    def __str__(self) -> str:
        raise TypeError("no text")


@pytest.mark.parametrize(
    "error",
    [
        ValueError(BAD),
        ValueError("x" * 10_000),
        raised(ValueError("plain"), raised(KeyError(0), ValueError(BAD))),
        noted(ValueError("plain")),
        ExceptionGroup("plain", [ValueError(BAD)]),
        Silent(),
    ],
    ids=["message", "long", "cause", "note", "group", "silent"],
)
def test_no_line_of_a_traceback_is_taken_for_a_record(written: io.StringIO, error: BaseException) -> None:
    log.say("error", "no", error=raised(error, error.__cause__))
    first, *lines = written.getvalue().splitlines()
    assert first == "ERROR vmscope: no"
    assert len(lines) > 2
    assert [line for line in lines if not line.startswith("    ")] == []
    assert [char for char in "\x1b\r\x9b\u202e" if char in written.getvalue()] == []
    assert len(written.getvalue()) < 20_000


def deep(left: int) -> None:
    even(left - 1) if left else int("x")


def even(left: int) -> None:
    deep(left - 1) if left else int("x")


def test_a_deep_traceback_is_short(written: io.StringIO) -> None:
    """CPython folds repeated lines, but not of functions that call each other."""
    try:
        deep(300)
    except ValueError as error:
        log.say("error", "no", error=error)
    assert written.getvalue().count("tests/unit/test_log.py") <= 51
    assert written.getvalue().endswith("ValueError: invalid literal for int() with base 10: 'x'\n")


# -- where it goes --------------------------------------------------------------------------------


def test_a_logging_that_is_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "logging", ModuleType("logging"))
    log.say("error", "no")


# -- agents ---------------------------------------------------------------------------------------


def test_an_agent_that_fails_every_other_time(vm: Host, written: io.StringIO) -> None:
    """Its event is never disabled, as it does not fail ten times in a row."""
    env = vm.get_env(agent="flaky")
    calls = iter(range(100_000))

    def callback(_: object) -> None:
        if next(calls) % 2:
            raise ValueError("now and then")

    env.set_event_callbacks({Event.DATA_DUMP_REQUEST: callback})
    env.set_event_notification_mode(True, Event.DATA_DUMP_REQUEST)
    for _ in range(10_000):
        vm.post(Event.DATA_DUMP_REQUEST)
    assert next(calls) == 10_000
    assert written.getvalue().count("agent flaky: its callback for DATA_DUMP_REQUEST raised") == 10


def test_names_from_outside_make_no_counters_without_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would be an entry of the region, which has no room then for the program's own."""
    registry = Registry()
    monkeypatch.setattr(agent_errors, "REGISTRY", registry)
    monkeypatch.setattr(agent_errors, "_counted", set())
    for number in range(10_000):
        agent_errors.count(f"agent {number} {'x' * 1000}", "agent_on_attach")
    counters = [each for each in registry if isinstance(each, Counter)]
    assert len(counters) == 1 + 32 + 1
    assert max(len(each.name) for each in counters) < 300
    others = registry.get('vmscope.agents.errors{agent="others",at="others"}')
    assert isinstance(others, Counter)
    assert others.value == 10_000 - 32
    total = registry.get(agent_errors.ERRORS)
    assert isinstance(total, Counter)
    assert total.value == 10_000
