"""The VM's system properties: what `-Dkey=value` gave, what agents set, what CPython can tell under the JVM's names."""

from __future__ import annotations

import os
import sys

from vmscope import environ, flags


def fixed() -> dict[str, str]:
    """Those that say what this VM and its system are; they cannot be changed."""
    info = sys.version_info
    system = os.uname() if hasattr(os, "uname") else None
    return {
        "java.home": sys.prefix,
        "java.version": f"{info.major}.{info.minor}.{info.micro}",
        "java.vm.name": "CPython" if sys.implementation.name == "cpython" else sys.implementation.name,
        "java.vm.version": sys.version.split()[0],
        "java.vm.vendor": "Python Software Foundation",
        "java.vm.info": sys.version.partition("(")[2].partition(")")[0],
        "java.vm.specification.name": "Python Language Reference",
        "java.vm.specification.vendor": "Python Software Foundation",
        "java.vm.specification.version": f"{info.major}.{info.minor}",
        "os.name": system.sysname if system else sys.platform,
        "os.arch": system.machine if system else "",
        "os.version": system.release if system else "",
        "file.separator": os.sep,
        "path.separator": os.pathsep,
        "line.separator": os.linesep,
    }


def changeable() -> dict[str, str]:
    """Those that have a value of their own until an agent gives them another."""
    return {
        "java.class.path": os.pathsep.join(sys.path),
        "java.library.path": sys.exec_prefix + "/lib",
        "java.io.tmpdir": environ.get("TEMP" if sys.platform == "win32" else "TMPDIR", "/tmp"),
        "user.dir": _folder(),
        "user.home": _home(),
        "user.name": _user(),
        "user.language": environ.get("LANG").partition("_")[0],
    }


def properties() -> dict[str, str]:
    """All, by name."""
    return {**changeable(), **flags.in_force.properties, **fixed()}


def set_property(name: str, value: str | None) -> bool:
    """None takes away what was given. False for one that cannot be changed."""
    if name in fixed():
        return False
    if value is None:
        flags.in_force.properties.pop(name, None)
    else:
        flags.in_force.properties[name] = value
    return True


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return ""


def _home() -> str:
    """What HOME says, where that is obeyed, else the passwd entry."""
    if sys.platform == "win32" or environ.is_obeyed():
        return os.path.expanduser("~")
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return ""


def _user() -> str:
    if sys.platform == "win32":
        return environ.get("USERNAME")
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a user of a container may have no name
        return str(os.geteuid())
