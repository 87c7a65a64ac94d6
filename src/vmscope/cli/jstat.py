"""`vmscope jstat`: the JDK's jstat, byte for byte, for scripts that parse it.

What differs on purpose: the explanations in its help are vmscope's own, errors have no stack traces, and other hosts
are not asked. A target that ended without removing its region ends the loop. `-t` works on VMs without a tick counter
(JDK 25), as that JDK's own jstat does it.
"""

from __future__ import annotations

from time import sleep, time_ns

from vmscope.cli import _java, _jvmstat
from vmscope.cli._jstat_request import JstatRequest, parse
from vmscope.cli._views import ViewError
from vmscope.errors import AccessDenied, CommandLineError, FormatError, NoRegion, VMIdentifierError, VMScopeError

# The name under which a view finds this machine's time, in ms since the epoch.
CLOCK = "jstat.timestamp"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vmscope.cli._views import View
    from vmscope.cli.vmid import VMIdentifier
    from vmscope.reader.machine import VM

HELP_OPTIONS = ("-?", "-h", "--help", "-help")

USAGE = """\
Usage: jstat --help|-options
       jstat -<option> [-t] [-h<lines>] <vmid> [<interval> [<count>]]

Definitions:
  <option>      a view; -options lists them
  <vmid>        a process: <lvmid>[@<hostname>[:<port>]], its pid here; or a
                saved region: file:/path
  <lines>       how many rows to a header line
  <interval>    the time between rows: <n>["ms"|"s"], milliseconds unless it
                says s
  <count>       how many rows; without it they go on until the target ends
  -t            the target's age in seconds comes first
"""

HELP = (
    USAGE
    + """
Shows a VM's counters, Python's or Java's, as the JDK's jstat does: the same
options, columns, rounding and exit status. Of -J options only
-J-Djstat.showUnsupported=true and -J-Duser.home= mean something here. Views of
your own go into ~/.jvmstat/jstat_options. By name: -list, -snap and -name
PATTERN.

example:
  $ vmscope jstat -gcutil 4711 1s 2
    S0     S1     E      O      M     CCS    YGC     YGCT     FGC    FGCT     CGC    CGCT       GCT
    0.00 100.00  42.42  59.13  99.07  96.28     13     0.025     2     0.007     6     0.002     0.035
    0.00 100.00  43.94  59.13  99.07  96.28     13     0.025     2     0.007     6     0.002     0.035
"""
)


def main(arguments: list[str]) -> int:
    """Shows what is asked for. 0, or 1 for bad arguments and where the target cannot be read."""
    try:
        own, properties = _java.split_options(arguments)
    except CommandLineError as error:
        return _java.complain(str(error))
    home = properties.get("user.home")
    unsupported = properties.get("jstat.showUnsupported", "").lower() == "true"
    try:
        if not own or own[0] in HELP_OPTIONS:
            _java.write(USAGE)
            return 0
        if own[0] == "-options":
            _list_options(home, unsupported)
            return 0
        try:
            request = parse(own)
            request.unsupported = unsupported
            view = find_view(request, home) if request.option is not None else None
            if request.list and request.vmid is None:
                _java.write(_names_of_python(request))
                return 0
            place = locate(request.vmid)
        except (CommandLineError, VMIdentifierError) as error:
            return _java.complain(f"{error}\n{USAGE}".rstrip("\n"))
        with _attach(place) as vm:
            _show(vm, request, view)
    except (VMScopeError, ViewError) as error:
        return _java.complain(str(error))
    return 0


def _names_of_python(request: JstatRequest) -> str:
    """Where no VM is named the JDK's jstat, which is one, lists its own counters: here those of a Python VM."""
    from vmscope.cli._jvmstat import MADE_UP_NAMES
    from vmscope.counters.catalogue import CATALOGUE

    names = {*(row[0] for row in CATALOGUE), *(MADE_UP_NAMES if request.unsupported else ())}
    return "".join([name + "\n" for name in sorted(names, reverse=request.descending)])


# -- views ----------------------------------------------------------------------------------------


def _own_views(home: str | None) -> tuple[str, str] | None:
    """The user's file of views and its text. The home directory is the one in the passwd entry, as for Java."""
    import os
    import sys

    if home is None and sys.platform == "win32":
        home = os.environ.get("USERPROFILE", "")
    elif home is None:
        import pwd

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return None
    path = home + "/.jvmstat/jstat_options"
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return path, file.read()
    except OSError:
        return None


def find_view(request: JstatRequest, home: str | None) -> View:
    """The view that the request names, with the timestamp's column before its own where that is asked for."""
    from vmscope.cli._standard_views import TIMESTAMP, standard_view

    own = _own_views(home)

    def find(name: str) -> View | None:
        view = _find_own_view(own, name) if own else None
        return view or standard_view(name, unsupported=request.unsupported)

    view = find(request.option or "")
    if view is None:
        raise CommandLineError(f"Unknown option: -{request.option}")
    if request.timestamp and (first := find(TIMESTAMP)) is not None:
        view.columns[:0] = first.columns[:1]
    return view


def _find_own_view(own: tuple[str, str], name: str) -> View | None:
    from vmscope.cli import _view_language

    path, text = own
    try:
        return _view_language.find_view(text, name)
    except _view_language.ViewSyntaxError as error:
        _java.complain(f"file:{path}: {error}\nParsing of file:{path} aborted")
        return None


def _list_options(home: str | None, unsupported: bool) -> None:
    from vmscope.cli._standard_views import OPTIONS, TIMESTAMP, UNSUPPORTED_OPTIONS

    names = {*OPTIONS, *(UNSUPPORTED_OPTIONS if unsupported else ())}
    if (own := _own_views(home)) is not None:
        from vmscope.cli._view_language import ViewSyntaxError, all_views

        path, text = own
        try:
            names.update(view.name for view in all_views(text))
        except ViewSyntaxError as error:
            _java.complain(f"file:{path}: {error}\nParsing of file:{path} aborted")
    _java.write("".join([f"-{name}\n" for name in sorted(names - {TIMESTAMP})]))


# -- the target -----------------------------------------------------------------------------------


def locate(vmid: str | None) -> int | VMIdentifier:
    """A local VM's number, or where else the VM is. Raises VMIdentifierError."""
    if vmid is None:
        return 0
    if vmid.isascii() and vmid.isdigit() and int(vmid) <= _java.INT_MAX:
        return int(vmid)
    from vmscope.cli.vmid import VMIdentifier

    identifier = VMIdentifier(vmid)
    return identifier.lvmid if identifier.scheme == "local" and identifier.mode == "r" else identifier


def _attach(place: int | VMIdentifier) -> VM:
    """The VM, ready to be read. Raises FormatError, and VMScopeError where it cannot be reached."""
    vm = _attach_local(place) if isinstance(place, int) else _attach_file(place)
    try:
        _jvmstat.wait(vm)
    except VMScopeError:
        vm.close()
        raise
    return vm


def _attach_local(lvmid: int) -> VM:
    from vmscope import reader

    try:
        return reader.vm(lvmid)
    except FormatError:
        raise
    except VMScopeError as error:
        raise VMScopeError(f"{lvmid} not found", pid=lvmid) from error


def _attach_file(place: VMIdentifier) -> VM:
    if place.path is not None:
        from vmscope.reader.attachment import open_saved
        from vmscope.reader.machine import VM

        try:
            return VM(open_saved(place.path))
        except (NoRegion, AccessDenied) as error:
            raise VMScopeError(f"Could not find {place.text}", path=place.path) from error
    if place.scheme == "local":  # and of a mode in which nothing can be attached
        raise VMScopeError(f"{place.lvmid} not found")
    if place.scheme == "rmi":
        raise VMScopeError(f"RMI Registry not available at {place.host}: vmscope reads this host's VMs only")
    raise VMScopeError(f"Could not find MonitoredHost for scheme: {place.scheme}")


# -- rows -----------------------------------------------------------------------------------------


def _show(vm: VM, request: JstatRequest, view: View | None) -> None:
    """Put out what the request asks of this VM."""
    if view is not None:
        _show_view(vm, request, view)
        return
    from vmscope.cli import _counter_lists

    if request.list:
        _java.write(_counter_lists.names(vm, request))
    elif request.snap:
        _java.write(_counter_lists.snapshot(vm, request))
    else:
        preface, header, row = _counter_lists.table(vm, request)
        _java.write(preface)
        if row is not None:
            _sample(vm, request, header, row)


def _show_view(vm: VM, request: JstatRequest, view: View) -> None:
    if request.timestamp and not vm.path_given and "sun.os.hrt.ticks" not in vm.counters:
        from vmscope.cli._standard_views import uptime_column

        view.columns[0] = uptime_column()
    names = view.names()
    adds = any(name.startswith(_jvmstat.MADE_UP) for name in names)
    symbols = _java.decimal_symbols()
    ready = [_jvmstat.values(vm)]  # a region that cannot be read fails before the header

    def row() -> str:
        values = ready.pop() if ready else _jvmstat.values(vm)
        if adds:
            values = {**{counter.name: counter.value for counter in _jvmstat.made_up(vm)}, **values}
        if CLOCK in names:
            values = {**values, CLOCK: time_ns() // 1_000_000}
        return view.row(values, symbols)

    _sample(vm, request, view.header(), row)


def _sample(vm: VM, request: JstatRequest, header: str, row: Callable[[], str]) -> None:
    """Rows at intervals, until there are as many as asked for or the target has ended."""
    rate = request.header_rate
    lines = 0  # rows until the next header
    if not rate:
        _java.write(header + "\n")
    taken = 0
    while True:
        if rate:
            if not lines:
                _java.write(header + "\n")
                lines = rate
            lines -= 1
        _java.write(row() + "\n")
        taken += 1
        if taken == request.count:
            return
        if request.interval > 0:
            sleep(request.interval / 1000)
        if not vm.path_given and not vm.alive:
            return
