"""`vmscope export`: the metrics of all VMs of this host."""

from __future__ import annotations

from vmscope import terminal
from vmscope.cli import _options
from vmscope.cli._signals import Signals
from vmscope.errors import CommandLineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.export.host import Host, Options
    from vmscope.export.server import Server

HELP = """\
usage: vmscope export [--listen=HOST:PORT | --listen=unix:PATH] [OPTION ...]
       vmscope export --once [OPTION ...]
       vmscope export --textfile=PATH [--interval=15] [OPTION ...]
       vmscope export --otlp[=URL] [--interval=60] [OPTION ...]
       vmscope export --import-jmx=FILE

Metrics of all Python and Java VMs of this host that you may read, for
Prometheus and what reads its formats. Each service is one series: the numbers
of its workers are added up, but for gauges that say otherwise.

  --listen=127.0.0.1:9464
                   where /metrics is served; :PORT is a port of the loopback
  --once           print them once
  --textfile=PATH  write them to a file for node_exporter, again and again; with
                   --once once
  --otlp=http://localhost:4318
                   push them to a collector, a resource for each VM; obeys the
                   variables OTEL_EXPORTER_OTLP_*
  --interval=15    how often, in seconds
  --by=service     what a series is: a service, or a process (pid), which adds
                   the labels pid and worker
  --vms=PATTERN    only VMs whose service, program or pid is like this: 'shop*'
  --service-from=option,otel,unit,main,container
                   what names a service; the first that gives a name
  --limit=20000    series of one VM's program
  --mapping=FILE   which counters, under which names: rules in TOML
  --import-jmx=FILE
                   print what a configuration of jmx_exporter is as such rules
  --web-config=FILE
                   TLS and basic authentication, as Prometheus's files have them
  --allowed-hosts=NAME,...
                   names under which it answers besides addresses, localhost and
                   this host's; * is any. On the loopback these alone, elsewhere
                   all where none is given

As root it keeps the right to read, and drops all others once it listens.
SIGTERM and Ctrl-C end it.

example:
$ vmscope export --once --vms=shop | grep requests
# HELP app_requests_total app.requests, a counter of the program's.
# TYPE app_requests_total counter
app_requests_total{service="shop",user="www"} 4711
"""

_TAKES: dict[str, str | None] = {
    "--once": None, "--listen": "", "--textfile": "", "--interval": "", "--by": "", "--vms": "", "--limit": "",
    "--service-from": "", "--web-config": "", "--allowed-hosts": "", "--otlp": " ", "--mapping": "", "--import-jmx": "",
}  # fmt: skip


def main(args: list[str]) -> int:
    """Serves, writes or prints. 0 when a signal has ended it."""
    given, words = _options.parse("export", args, _TAKES)
    if words:
        raise _wrong(f"takes no argument {words[0]!r}")
    if "--import-jmx" in given:
        return _import(given["--import-jmx"])
    ways = [way for way in ("--listen", "--otlp", "--textfile") if way in given]
    if len(ways) > 1 or (ways and ways != ["--textfile"] and "--once" in given):
        raise _wrong("takes one of --listen, --otlp, --textfile and --once")
    if "--otlp" in given:
        return _push(given)
    interval = _options.seconds("export", given.get("--interval", "15"))
    from vmscope.export.host import Host
    from vmscope.export.text import TEXT_0

    host = Host(_what(given))
    try:
        if "--textfile" in given:
            return _write(host, given["--textfile"], 0.0 if "--once" in given else interval)
        if "--once" in given:
            terminal.OUT.show(host.render(TEXT_0).decode())
            return 0
        return _serve(host, given)
    finally:
        host.close()


def _what(given: dict[str, str]) -> Options:
    """What is exported."""
    from vmscope.export import rules
    from vmscope.export.host import LIMIT, Options
    from vmscope.services.naming import ORDER

    by = given.get("--by", "service")
    if by not in ("service", "pid"):
        raise _wrong(f"does not take --by={by}: use service or pid")
    ways = tuple(given.get("--service-from", ",".join(ORDER)).split(","))
    if unknown := set(ways) - set(ORDER):
        raise _wrong(f"does not know {sorted(unknown)[0]!r} in --service-from: use {', '.join(ORDER)}")
    limit = _options.count("export", given.get("--limit", str(LIMIT)))
    found = rules.load(given["--mapping"]) if "--mapping" in given else None
    return Options(by_pid=by == "pid", pattern=given.get("--vms", ""), limit=limit, ways=ways, rules=found)


def _import(path: str) -> int:
    """Prints the rules, and says what could not be translated. 1 where nothing could."""
    from vmscope.export import jmx

    text, left = jmx.translate(path)
    terminal.OUT.show(text)
    for line in left:
        terminal.ERR.show(f"vmscope: {terminal.printable(line)}\n")
    return 0 if "[[rules]]" in text else 1


def _serve(host: Host, given: dict[str, str]) -> int:
    from vmscope.export import rights, web_config
    from vmscope.export.server import DEFAULT, Server

    _allow_many_files()
    config = web_config.load(given["--web-config"]) if "--web-config" in given else None
    hosts = [name for name in given.get("--allowed-hosts", "").split(",") if name]
    server = Server(host, given.get("--listen", DEFAULT), config, hosts)
    with Signals() as signals:
        try:
            rights.drop()
            _start(server)
            signals.wait()
        finally:
            server.close()
    return 0


def _start(server: Server) -> None:
    server.start()
    terminal.OUT.show(f"{server.url}\n")
    terminal.OUT.flush()


def _push(given: dict[str, str]) -> int:
    """A resource is a VM, whatever a series is elsewhere."""
    from vmscope import __version__
    from vmscope.export import rights
    from vmscope.export.host import Host
    from vmscope.export.push import Pusher, Target

    target = Target(given["--otlp"].strip())
    interval = _options.seconds("export", given["--interval"]) if "--interval" in given else target.interval
    _allow_many_files()
    host = Host(_what({**given, "--by": "pid"}))
    pusher = Pusher(host, target, __version__)
    with Signals() as signals:
        rights.drop()
        pusher.start()
        said = ""
        while True:
            pusher.read()
            ended = signals.wait(interval)
            if pusher.problem != said:
                said = pusher.problem
                terminal.ERR.show(f"vmscope: {target.url}: {terminal.printable(said) or 'it answers again'}\n")
            if ended:
                break
        pusher.close()
    host.close()
    return 0


def _write(host: Host, path: str, interval: float) -> int:
    """Writes the file, again and again where there is an interval. Without an end it would be taken for news."""
    from vmscope.export import textfile
    from vmscope.export.text import TEXT_0

    _allow_many_files()
    with Signals() as signals:
        while True:
            textfile.write(path, host.render(TEXT_0))
            if not interval or signals.wait(interval):
                return 0


def _allow_many_files() -> None:
    """A descriptor for each VM, as far as this user may have them."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _wrong(what: str) -> CommandLineError:
    return CommandLineError(f"export {what}", hint="vmscope export --help shows what it takes")
