"""Changes words of its own memory, each an offset and a value, from an address on that has a name."""

import ctypes
import sys


def word(at):
    return ctypes.c_uint64.from_address(at)


def runtime():
    return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))


def state():
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    return get()


def code():
    return id(waits.__code__)


def waits():
    sys.stdin.read()


def main(what, *changes):
    base = {"runtime": runtime, "state": state, "code": code, "name": lambda: id(waits.__code__.co_qualname)}[what]()
    for change in changes:
        offset, _, value = change.partition("=")
        word(base + int(offset)).value = base if value == "self" else int(value)
    print("ready", base, flush=True)
    waits()


main(*sys.argv[1:])
