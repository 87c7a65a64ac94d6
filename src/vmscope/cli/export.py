"""`vmscope export`: the metrics of all VMs of this host."""

from __future__ import annotations

from vmscope import terminal
from vmscope.cli import _options
from vmscope.errors import CommandLineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.export.host import Options

HELP = """\
usage: vmscope export --once [options]

Metrics of all Python and Java VMs of this host that you may read.

  --once           print them once

example:
$ vmscope export --once --vms=shop | grep requests
# HELP app_requests_total app.requests, a counter of the program's.
# TYPE app_requests_total counter
app_requests_total{service="shop",user="www"} 4711
"""

_TAKES: dict[str, str | None] = {"--once": None, "--by": "", "--vms": "", "--limit": "", "--service-from": ""}


def main(args: list[str]) -> int:
    given, words = _options.parse("export", args, _TAKES)
    if words:
        raise _wrong(f"takes no argument {words[0]!r}")
    from vmscope.export.host import Host
    from vmscope.export.text import TEXT_0

    host = Host(_what(given))
    terminal.OUT.show(host.render(TEXT_0).decode())
    return 0


def _what(given: dict[str, str]) -> Options:
    """What is exported."""
    from vmscope.export.host import LIMIT, Options
    from vmscope.services.naming import ORDER

    by = given.get("--by", "service")
    if by not in ("service", "pid"):
        raise _wrong(f"does not take --by={by}: use service or pid")
    ways = tuple(given.get("--service-from", ",".join(ORDER)).split(","))
    if unknown := set(ways) - set(ORDER):
        raise _wrong(f"does not know {sorted(unknown)[0]!r} in --service-from: use {', '.join(ORDER)}")
    limit = _options.count("export", given.get("--limit", str(LIMIT)))
    return Options(by_pid=by == "pid", pattern=given.get("--vms", ""), limit=limit, ways=ways)


def _wrong(what: str) -> CommandLineError:
    return CommandLineError(f"export {what}", hint="vmscope export --help shows what it takes")
