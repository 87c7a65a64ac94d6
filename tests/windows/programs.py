"""Programs of the Windows suite, and what it asks of Windows beyond what vmscope does."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable
from ctypes import byref, c_void_p, wintypes

from tests.support import JDK, PATIENCE
from vmscope import win32

WINE = hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")


class Program:
    """A Python of its own, which runs `code` up to a line `ready`, then evaluates what it is asked."""

    LOOP = "\nprint('ready', flush=True)\nfor line in sys.stdin:\n    print(eval(line), flush=True)\n"

    def __init__(self, code: str, *options: str, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *options, "-c", f"import os, sys, vmscope\n{code}{self.LOOP}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
            creationflags=subprocess.CREATE_NO_WINDOW,  # a console of its own, for a Ctrl-C that nobody else gets
        )
        self.pid = self.process.pid
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line: str) -> str:
        self.send(line)
        return self._line()

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:  # what was sent last found nobody
                pass


def java(jdk: JDK, *command: str) -> str:
    """What a tool of the JDK prints, without Wine's own complaints.

    Under Wine a JVM hangs now and then as it starts: then it gets another try.
    """
    for _ in range(3 if WINE else 1):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                [jdk.tool(command[0]), *command[1:]], stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )
            try:
                status = process.wait(15 if WINE else PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(PATIENCE)
                continue
            out.seek(0)
            err.seek(0)
            assert status == 0, err.read()
            return out.read().decode().replace("\r\n", "\n")
    raise AssertionError(f"{command} hung in each try")


# -- access rights --------------------------------------------------------------------------------

_DACL, _READ_CONTROL, _FILE_MAP_READ, _FILE_OBJECT = 4, 0x20000, 4, 1
_kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
_advapi32 = ctypes.WinDLL("advapi32", use_last_error=True)
_kernel32.OpenFileMappingW.restype = wintypes.HANDLE
_kernel32.OpenFileMappingW.argtypes = (wintypes.DWORD, wintypes.BOOL, wintypes.LPCWSTR)
_advapi32.GetKernelObjectSecurity.argtypes = (wintypes.HANDLE, wintypes.DWORD, c_void_p, wintypes.DWORD, c_void_p)
_advapi32.GetFileSecurityW.argtypes = (wintypes.LPCWSTR, wintypes.DWORD, c_void_p, wintypes.DWORD, c_void_p)
_text_of = _advapi32.ConvertSecurityDescriptorToStringSecurityDescriptorW
_text_of.argtypes = (c_void_p, wintypes.DWORD, wintypes.DWORD, c_void_p, c_void_p)


def _text(ask: Callable[..., int], thing: object) -> str:
    """The DACL that `ask` gives of a thing, as SDDL."""
    needed = wintypes.DWORD()
    ask(thing, _DACL, None, 0, byref(needed))
    room = ctypes.create_string_buffer(needed.value)
    assert ask(thing, _DACL, room, needed, byref(needed)), ctypes.WinError(ctypes.get_last_error())
    text = c_void_p()
    assert _text_of(room, 1, _DACL, byref(text), None), ctypes.WinError(ctypes.get_last_error())
    return ctypes.wstring_at(text.value or 0)


def rights_of_mapping(name: str) -> str:
    handle = _kernel32.OpenFileMappingW(_FILE_MAP_READ | _READ_CONTROL, False, name)
    assert handle, ctypes.WinError(ctypes.get_last_error())
    try:
        return _text(_advapi32.GetKernelObjectSecurity, handle)
    finally:
        win32.close(handle)


def rights_of_file(path: str) -> str:
    return _text(_advapi32.GetFileSecurityW, path)
