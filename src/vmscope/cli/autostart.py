"""`vmscope autostart`: every Python of an environment visible, as every JVM is; or no longer."""

from __future__ import annotations

import os
import sys

from vmscope import environ, terminal
from vmscope.errors import CommandLineError, VMScopeError

HELP = """\
usage: vmscope autostart on | off | status

Makes every Python of this environment visible to vmscope's tools and to the
JDK's, as every JVM is: the environment of the Python that runs vmscope, a
virtual one, a user's or the system's. It writes one file there,
vmscope_autostart.pth, which `off` removes; `status` tells whether it is there.

A program appears 20 ms after its start, unless it has called
vmscope.start(OPTIONS) itself by then; one that has ended by then never notices.
VM options for all of them come from the variable VMSCOPE_TOOL_OPTIONS. The
variable VMSCOPE=0 leaves a process and what it starts alone. `python -E` and
`-I`, and programs with more rights than whoever starts them (setuid, setgid,
file capabilities), obey neither.

example:
  $ vmscope autostart on
  autostart    on
  file         /srv/shop/venv/lib/python3.12/site-packages/vmscope_autostart.pth
  environment  /srv/shop/venv (virtual environment, CPython 3.12.1)
  $ python -m http.server 8000 &
  $ jps -l
  4711 http.server
"""

NAME = "vmscope_autostart.pth"  # sorts behind the files by which an editable installation of vmscope is found

# `site` runs a line that begins with import, and shows what it raises: so nothing may be raised.
LINES = """\
# Every Python that starts here can be seen by vmscope and the JDK's tools; `vmscope autostart off` ends that.
import sys; exec({!r})
""".format(
    """
try:
    from vmscope import environ
    if environ.get("VMSCOPE") != "0":
        from vmscope.boot import autostart
        autostart()
except Exception:
    pass
"""
)

_CHECK = "import sys; sys.exit('vmscope.boot' not in sys.modules)"


def main(args: list[str]) -> int:
    """Does one of the three. Raises VMScopeError where the file cannot be written or removed, or does not work."""
    if len(args) != 1 or args[0] not in ("on", "off", "status"):
        raise CommandLineError("autostart: say on, off or status", hint="vmscope autostart --help")
    path = os.path.join(_folder(), NAME)
    try:
        if args[0] == "on":
            _switch_on(path)
        elif args[0] == "off" and os.path.lexists(path):
            os.unlink(path)
    except OSError as error:
        raise VMScopeError(
            f"autostart: cannot {'write' if args[0] == 'on' else 'remove'} {path}: {error.strerror}",
            path=path,
            hint="use an account that may write there, or the vmscope of a virtual environment of yours",
        ) from error
    rows = [("autostart", "on" if os.path.lexists(path) else "off"), ("file", path), ("environment", _environment())]
    terminal.OUT.show("".join([f"{name:<13}{terminal.printable(text)}\n" for name, text in rows]))
    return 0


def _folder() -> str:
    """Where this environment looks for `.pth` files: the user's folder if vmscope is installed there, else its own."""
    import site
    import sysconfig

    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if sys.prefix == sys.base_prefix and site.ENABLE_USER_SITE and home == site.getusersitepackages():
        return home
    return sysconfig.get_path("purelib")


def _environment() -> str:
    kind = "virtual environment" if sys.prefix != sys.base_prefix else "no virtual environment"
    name = {"cpython": "CPython"}.get(sys.implementation.name, sys.implementation.name)
    return f"{sys.prefix} ({kind}, {name} {'.'.join(map(str, sys.version_info[:3]))})"


def _switch_on(path: str) -> None:
    import compileall
    import subprocess

    temporary = f"{path}.{os.getpid()}"  # not seen by `site`, and whole when it is
    try:
        with open(temporary, "x", encoding="ascii") as file:
            file.write(LINES)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    # Whoever starts a Python here may be unable to write what compilation yields, and would do it each time.
    compileall.compile_dir(os.path.dirname(os.path.dirname(__file__)), quiet=2)
    environment = {name: value for name, value in environ.inherited().items() if name != "VMSCOPE"}
    check = subprocess.run([sys.executable, "-c", _CHECK], env=environment, stdin=subprocess.DEVNULL, check=False)
    if check.returncode:
        os.unlink(path)
        raise VMScopeError(
            f"autostart: a Python of {sys.prefix} does not find vmscope when it starts",
            hint=f"install it there: {sys.executable} -m pip install vmscope",
        )
