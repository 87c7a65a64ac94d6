"""The environment's variables, where they are obeyed: whoever starts a process chooses them.

A process that may do more than whoever started it takes nothing from there, as HotSpot takes no JAVA_TOOL_OPTIONS:
a setuid or setgid program, one with file capabilities, whatever else the kernel calls secure (AT_SECURE), and each
whose real and effective ids differ. Nor does one that has to ignore the environment (`python -E`, `-I`).

No other module reads a variable that loads code, names a file or changes an option; `tests/unit/test_architecture.py`
lists what is read elsewhere.
"""

from __future__ import annotations

import os
import sys

OPTIONS = "VMSCOPE_TOOL_OPTIONS"
RUN_OPTIONS = "VMSCOPE_RUN_OPTIONS"  # those of the `vmscope run` that started this process, or one that it came from
# Variables that switch an instrument on where vmscope starts by itself, or by `vmscope run`.
INSTRUMENTS = {"PROMETHEUS_MULTIPROC_DIR": "prometheus"}

_AT_SECURE = 23
_secure: bool | None = None  # what the kernel said when the program was started


def get(name: str, default: str = "") -> str:
    """The variable's value; `default` where it is not set or not obeyed. One that is not set costs nothing more."""
    value = os.environ.get(name)
    return value if value is not None and is_obeyed() else default


def instruments() -> list[str]:
    """The instruments that variables switch on."""
    return [name for variable, name in INSTRUMENTS.items() if get(variable)]


def is_obeyed() -> bool:
    """Whether this process takes anything from the environment."""
    return not sys.flags.ignore_environment and not is_privileged()


def hand_on(name: str, value: str | None) -> None:
    """Sets a variable for what is started from here; None takes it away."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def inherited() -> dict[str, str]:
    """What a program that is started from here gets."""
    return {"PATH": os.defpath} if is_privileged() else dict(os.environ)


def is_privileged() -> bool:
    """Whether this process has rights that whoever started it may lack."""
    global _secure
    if sys.platform == "win32":  # where a process has the rights of its starter, or of a user whose password was given
        return False
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        return True
    if _secure is None:
        _secure = _is_secure()
    return _secure


def _is_secure() -> bool:
    """What the kernel says; true where it cannot be asked."""
    try:
        with open("/proc/self/auxv", "rb") as file:
            words = memoryview(file.read()).cast("L")
        return bool(dict(zip(words[::2], words[1::2], strict=True)).get(_AT_SECURE, True))
    except OSError:  # no /proc; or root's process that has become a user's, and may not look at itself
        pass
    try:
        import ctypes

        return bool(ctypes.CDLL(None).getauxval(_AT_SECURE))
    except (ImportError, OSError, AttributeError):
        return True
