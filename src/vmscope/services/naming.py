"""What a service is called: by an option of its first process, or by what the process is.

The ways are tried in an order; the first that gives a name has it. Names are others' text.
"""

from __future__ import annotations

import re

from vmscope.reader.process import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.reader.machine import VM

OPTION, OTEL, UNIT, MAIN, CONTAINER = "option", "otel", "unit", "main", "container"
WAYS = (  # in the order in which they are tried, and what each is
    (OPTION, "the VM's option -Dvmscope.service=NAME"),
    (OTEL, "OTEL_SERVICE_NAME, or service.name in OTEL_RESOURCE_ATTRIBUTES, of its environment"),
    (UNIT, "the systemd unit that it belongs to: shop.service is shop"),
    (MAIN, "the program's short name, as vmscope ps shows it"),
    (CONTAINER, "the first 12 characters of its container's id"),
)
ORDER = tuple(way for way, _ in WAYS)

_OPTION = re.compile(r"(?:^|\s)-Dvmscope\.service=(\S+)")
_UNIT = re.compile(r"([^/]+)\.service(?:/|$)")
_CONTAINER = re.compile(r"(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?(?:/|$)")
_MANAGERS = ("user@", "init", "docker", "containerd", "cri-o", "podman")  # units that start others' programs
_LIMIT = 1 << 17


def service_name(vm: VM, ways: tuple[str, ...] = ORDER) -> str:
    """The name of a VM's service, by the first of these ways that gives one; "" where none does."""
    return next((name for way in ways if (name := _NAMES[way](vm))), "")


def container_id(pid: int) -> str:
    """Of the container that a process runs in; "" for none that its control groups report."""
    match = _CONTAINER.search(_read(pid, "cgroup"))
    return "" if match is None else match[1]


def _option(vm: VM) -> str:
    match = _OPTION.search(vm.vm_arguments)
    return "" if match is None else match[1]


def _otel(vm: VM) -> str:
    found = {}
    for word in _read(vm.pid or 0, "environ").split("\0"):
        name, _, value = word.partition("=")
        if name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
            found[name] = value
    if given := found.get("OTEL_SERVICE_NAME"):
        return given
    pairs = (pair.partition("=")[::2] for pair in found.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","))
    return next((value.strip() for key, value in pairs if key.strip() == "service.name"), "")


def _unit(vm: VM) -> str:
    units = [name for name in _UNIT.findall(_read(vm.pid or 0, "cgroup")) if not name.startswith(_MANAGERS)]
    return units[-1] if units else ""


def _main(vm: VM) -> str:
    return vm.main


def _container(vm: VM) -> str:
    return container_id(vm.pid or 0)[:12]


def _read(pid: int, name: str) -> str:
    """A file of the process's; "" where it is not ours to read."""
    try:
        return read_file(f"/proc/{pid}/{name}", _LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


_NAMES = {OPTION: _option, OTEL: _otel, UNIT: _unit, MAIN: _main, CONTAINER: _container}
