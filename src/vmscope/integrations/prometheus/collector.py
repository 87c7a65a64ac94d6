"""Collecting in multiprocess mode: this process's cells, other processes' regions, and files that there are."""

from __future__ import annotations

import glob
import json
import os
from _thread import _local
from functools import wraps

from vmscope import reader
from vmscope.errors import VMScopeError
from vmscope.export.names import Entry
from vmscope.integrations.prometheus import states
from vmscope.integrations.prometheus.cells import FAMILY, FOLDER, IDENTIFIER, Cell, time_of
from vmscope.integrations.prometheus.values import GROUPS, OLD_VARIABLE, VARIABLE
from vmscope.reader.process import user_name
from vmscope.wire.floats import with_floats
from vmscope.wire.series import is_mark, removal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType
    from typing import Any

    Row = tuple[str, float, float, int]  # a key as prometheus_client's files have it, a value, a time, nothing
    Files = dict[str, list[Row]]  # by the names that the files would have

LIVE = "gauge_live"


def rows(found: Iterable[Cell]) -> Iterator[Row]:
    for cell in found:
        metric = cell.metric
        for sample, names, values, value, time in cell.samples():
            yield _key(metric.name, sample, dict(zip(names, values, strict=True)), metric.help), value, time, 0


def _key(metric: str, sample: str, labels: dict[str, str], help: str) -> str:
    return json.dumps([metric, sample, labels, help], sort_keys=True)


def of_this_process(folder: str) -> Files:
    files: Files = {}
    for name, found in GROUPS.files(folder):
        files.setdefault(name, []).extend(rows(list(found.values())))
    return files


def of_others(folder: str) -> Files:
    """Those of all processes of this user that have the same folder."""
    files: Files = {}
    ours = user_name(os.geteuid())
    for vm in reader.vms():
        try:
            if vm.pid != os.getpid() and vm.user == ours and vm.reader.some((FOLDER,)).get(FOLDER) == folder:
                _read(vm, files)
        except VMScopeError:  # it ends, or is damaged: then its numbers are not there
            pass
        finally:
            vm.close()
    return files


def _read(vm: reader.VM, files: Files) -> None:
    from prometheus_client import utils

    to_text: Any = utils.floatToGoString

    values = with_floats(vm.values())
    families: dict[str, list[str]] = {}
    for name, text in values.items():
        if name.startswith(FAMILY) and isinstance(text, str) and text.count(" ") >= 2:
            families[name.removeprefix(FAMILY)] = text.split(" ", 2)
    identifier = values.get(IDENTIFIER) or vm.nspid
    is_removed = removal((name, int(value)) for name, value in values.items() if is_mark(name))
    for name, value in values.items():
        entry = Entry(name)
        if isinstance(value, str) or "time" in entry.marks or is_mark(name) or is_removed(name):
            continue
        metric, sample = _named(entry.base, families)
        if metric is None:
            continue
        type, mode, help = families[metric]
        labels = dict(entry.labels)
        if sample.endswith("_bucket") and "le" in labels:
            labels["le"] = str(to_text(float(labels["le"])))
        set_at = values.get(time_of(name), 0) if mode.endswith("mostrecent") else 0
        group = f"{type}_{mode}" if type == "gauge" else type
        row = _key(metric, sample, labels, help), float(value), 0.0 if isinstance(set_at, str) else set_at / 1e9, 0
        files.setdefault(f"{group}_{identifier}.db", []).append(row)


def _named(base: str, families: dict[str, list[str]]) -> tuple[str | None, str]:
    """The metric and the sample that an entry is of; None where it is nothing of prometheus_client's."""
    head, _, part = base.rpartition(".")
    if head in families and families[head][0] in ("histogram", "summary"):
        return head, f"{head}_{part}"
    for metric in (base, base.removesuffix("_total")):
        if metric in families and families[metric][0] not in ("histogram", "summary"):
            return metric, base
    return None, ""


class _Reading(_local):
    """What a collector of this thread has at hand, by path."""

    files: Files = {}


_reading = _Reading()


def replacements(module: ModuleType) -> dict[str, Any]:
    """What takes the place of the names in prometheus_client.multiprocess: a collector that needs no files."""
    original, read_file, mark_dead = (
        module.MultiProcessCollector,
        module.MmapedDict.read_all_values_from_file,
        module.mark_process_dead,
    )

    class MmapedDict(module.MmapedDict):  # type: ignore[name-defined, misc]
        @staticmethod
        def read_all_values_from_file(filename: str) -> Any:
            folder, name = os.path.split(filename)
            found = _reading.files.get(filename) or of_this_process(folder).get(name)
            return read_file(filename) if found is None else found

    class MultiProcessCollector(original):  # type: ignore[misc, valid-type]
        __doc__ = original.__doc__

        def collect(self) -> Any:
            path = self._path
            states.ask()
            files = {os.path.join(path, name): found for name, found in of_others(path).items()}
            for name, found in of_this_process(path).items():
                files.setdefault(os.path.join(path, name), []).extend(found)
            written = glob.glob(os.path.join(glob.escape(path), "*.db"))  # by processes without vmscope
            _reading.files = files
            try:
                return self.merge([*files, *(name for name in written if name not in files)], accumulate=True)
            finally:
                _reading.files = {}

    @wraps(mark_dead)
    def mark_process_dead(pid: object, path: str | None = None) -> None:
        mark_dead(pid, path)
        GROUPS.forget(path or os.environ.get(VARIABLE) or os.environ.get(OLD_VARIABLE, ""), pid, LIVE)

    made = (MmapedDict, MultiProcessCollector, mark_process_dead)
    for each in made:
        each.__module__, each.__qualname__ = module.__name__, each.__name__
    return {each.__name__: each for each in made}
