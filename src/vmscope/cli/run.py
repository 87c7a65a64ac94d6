"""`vmscope run`: Python, with a region from the first line on.

No `__future__` import here: code that is given as text would inherit it.
"""

import os
import sys

from vmscope import environ, errors, flags, native, own_threads, runtime

if sys.platform != "win32":
    from vmscope import termination

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_VM_OPTIONS = ("-XX:", "-D", "-agent", "-pyagent", "-Xrs", "-Xcheck", "@")  # how words begin that python has no part in

_HELP = """\
usage: vmscope run [VM OPTION | PYTHON OPTION ...]
                   SCRIPT.py | -m MODULE | -c CODE | - [ARGUMENT ...]

Runs a program as `python` would, with a region in which its counters, its
collector and its identity can be read by vmscope's tools and by the JDK's (jps,
jstat, jcmd PID PerfCounter.print).

  -m MODULE   run a module, as python -m does
  -c CODE     run code given as text
  -           run the code that comes on standard input
  -Dkey=value set a property; jps -v shows it
  @FILE       take options from a file
  -pyagent:MODULE[=OPTIONS]
              load an agent, before the program's first line; -agentlib:NAME
              and -agentpath:PATH likewise, for native libraries and for agents
              that are linked into the executable
  -Xcheck:jni log what native agents do wrong with JNI
  -Xrs        leave SIGTERM and SIGHUP alone; else, at their default action,
              they end the VM in order first
  -u -O -B -I -E -s -S -P -b -d -i -q -v -W WARNING -X OPTION
  --check-hash-based-pycs WHEN
              what python takes, before, between or after those of the VM

{flags}

The options in the variable {environment} come before those of the
command line. Under `python -E` and `-I`, and in a program with more rights than
whoever starts it, no variable is obeyed.

example:
  $ vmscope run -XX:PerfDataMemorySize=128k -m http.server 8000 &
  $ vmscope jps -lmv
  4711 http.server 8000 -XX:PerfDataMemorySize=128k
"""


def __getattr__(name: str) -> str:
    if name == "HELP":
        from vmscope.terminal import fold

        described = "\n".join(fold(line, indent=6) for line in flags.describe().splitlines())
        return _HELP.format(flags=described, environment=environ.OPTIONS)
    raise AttributeError(name)


def main(args: list[str]) -> "Callable[[], int]":
    """Starts the VM; what comes back runs the program, whose errors and exit status are its own.

    No counter, agent or other tool sees vmscope's code before the program and after it.
    """
    native.leave_programs_code()
    try:
        return _prepared(args)
    finally:
        native.enter_programs_code()


class _Over(int):
    """The status of a program that has ended by itself. `sys.exit`, which gets it, raises for us; what follows it, as
    the program's exit handlers, is the program's: this has gone by then."""

    def __new__(cls) -> "_Over":
        native.leave_programs_code()
        return super().__new__(cls)

    def __del__(self) -> None:
        native.enter_programs_code()


def _prepared(args: list[str]) -> "Callable[[], int]":
    options, kind, target, arguments = _split(args)
    application = not kind and _is_application(target)
    source = b"" if kind or application else _read(target)
    environ.hand_on(environ.RUN_OPTIONS, None)  # of a `vmscope run` that this was started under
    inherited = environ.get(environ.OPTIONS)
    if inherited:
        _show(f"Picked up {environ.OPTIONS}: {inherited}\n")
    name = {"-m": target, "-c": "-c"}.get(kind, target.removesuffix(".py"))
    path = _first_path(kind, target, application)
    names = environ.instruments()
    if names:
        from vmscope import instruments  # not before: two modules more to each start

        instruments.instrument(*names)
    runtime.start(*options, program=(" ".join([name, *arguments]), _class_path(path)), agents=False)
    if runtime.VM.no_room is not None:
        from vmscope import terminal

        terminal.complain(runtime.VM.no_room)
    if runtime.VM.flags.on("FollowChildren"):
        own = runtime.VM.flags.arguments[runtime.VM.flags.own :]
        environ.hand_on(environ.RUN_OPTIONS, flags.join(own))
    own_threads.at_exit(_tell_unsaved)
    if sys.platform != "win32" and not runtime.VM.flags.on("ReduceSignalUsage"):  # where such signals do not exist
        termination.take_signals(runtime.VM.exit)
        termination.forwarding_signal()  # here on the main thread: agents may come later, on another one
    if kind == "-m" or application:
        __import__("runpy")
    _set_path(path)
    try:
        runtime.VM.load_agents(shown=True)
    except errors.LibraryError as error:
        _show(error.at_start())
        return lambda: 1

    def program() -> int:
        module = _make_main()
        try:
            if kind == "-m":
                _run_module(target, arguments)
            elif kind == "-c":
                _run_code(module, target, arguments)
            elif application:
                _run_application(target, arguments)
            else:
                _run_script(module, target, source, arguments)
        except SystemExit:
            raise
        except BaseException as error:
            _hide_own_frames(error, target if kind == "-c" else "")
            raise
        return 0 if sys.flags.inspect else _Over()  # python -i keeps what was raised last

    return program


def _split(args: list[str], *, known: bool = False) -> tuple[list[str], str, str, list[str]]:
    """The VM options; then -m, -c or nothing, what it runs, and the program's arguments.

    Options of python's make an interpreter take this one's place. `known`: there are none.
    """
    for position, word in enumerate(args):
        if word in ("-m", "-c"):
            if position + 1 == len(args):
                raise errors.CommandLineError(f"run: {word} needs a word after it")
            return args[:position], word, args[position + 1], args[position + 2 :]
        if word == "-" or not word.startswith(("-", "@")):
            return args[:position], "", word, args[position + 1 :]
        if not (known or word.startswith(_VM_OPTIONS)):
            from vmscope.cli import _interpreter

            return _split(_interpreter.replace(args), known=True)
    raise errors.CommandLineError("run: name a script, -m MODULE or -c CODE", hint="vmscope run --help")


def _is_application(path: str) -> bool:
    """Whether it is a directory or a zip file, as import finds out."""
    for hook in sys.path_hooks:
        try:
            hook(path)
        except ImportError:
            continue
        return True
    return False


def _read(path: str) -> bytes:
    try:
        with open(0 if path == "-" else path, "rb", closefd=path != "-") as file:
            return file.read()
    except OSError as error:
        raise errors.CommandLineError(f"run: cannot open {path}: {error.strerror}", path=path) from error


def _make_main() -> "ModuleType":
    """A `__main__` as the interpreter makes it."""
    module = type(sys)("__main__")
    module.__dict__.update(
        __builtins__=__import__("builtins"), __loader__=sys.modules["_frozen_importlib"].BuiltinImporter
    )
    if sys.version_info < (3, 14):
        module.__annotations__ = {}
    sys.modules["__main__"] = module
    return module


def _tell_unsaved() -> None:
    """Reports a save that was asked for and is not there; the exit status stays the program's."""
    if runtime.VM.unsaved:
        _show(f"vmscope: {runtime.VM.unsaved}\n")


def _show(text: str) -> None:
    from vmscope import terminal

    terminal.ERR.show(text)


def _first_path(kind: str, target: str, application: bool) -> str:
    """Where the program's own modules are looked for, and its agents."""
    if kind == "-m":
        return os.getcwd()
    if kind == "-c" or target == "-":
        return ""
    return os.path.abspath(target) if application else os.path.dirname(os.path.realpath(target))


def _class_path(entry: str) -> str:
    """The program's, before it is in force: until then vmscope's own modules are imported."""
    return os.pathsep.join(sys.path if sys.flags.safe_path else [entry, *sys.path[1:]])


def _set_path(entry: str) -> None:
    if not sys.flags.safe_path:
        sys.path[0] = entry


def _run_code(module: "ModuleType", code: str, arguments: list[str]) -> None:
    sys.argv[:] = ["-c", *arguments]
    exec(code, module.__dict__)  # as text: compile() would make every class of the ast module first, 1 ms


def _run_module(name: str, arguments: list[str]) -> None:
    import runpy

    sys.argv[:] = ["-m", *arguments]
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]  # what python -m itself calls


def _run_application(path: str, arguments: list[str]) -> None:
    import runpy

    sys.argv[:] = [path, *arguments]
    if sys.flags.safe_path:
        sys.path.insert(0, os.path.abspath(path))
    runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]


def _run_script(module: "ModuleType", path: str, source: bytes, arguments: list[str]) -> None:
    sys.argv[:] = [path, *arguments]
    if path == "-":
        file = "<stdin>"
    else:
        file = os.path.join(os.getcwd(), path)
        module.__loader__ = sys.modules["_frozen_importlib_external"].SourceFileLoader("__main__", file)
    module.__file__ = file
    if sys.version_info < (3, 15):
        module.__cached__ = None  # type: ignore[attr-defined]
    exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)


def _hide_own_frames(error: BaseException, code: str) -> None:
    """Lets the interpreter show the error as it would without this module. `code` is that of -c."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    if code and sys.version_info >= (3, 13):  # from there on python shows the lines of -c
        import linecache

        linecache.cache["<string>"] = (len(code), None, code.splitlines(keepends=True), "<string>")
    hook = sys.excepthook

    def show(kind: type[BaseException], value: BaseException, _: object) -> None:
        sys.excepthook = hook
        sys.last_traceback = trace
        hook(kind, value.with_traceback(trace), trace)

    sys.excepthook = show
