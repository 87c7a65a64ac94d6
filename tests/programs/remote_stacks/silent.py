"""A program a part of whose memory never answers: whoever reads it waits until somebody fills it, which nobody does."""

import ctypes
import fcntl
import mmap
import struct
import sys

UFFDIO_API, UFFDIO_REGISTER = 0xC018AA3F, 0xC020AA00
CALLS = {"x86_64": 323, "aarch64": 282}


def silent_page(machine):
    """The address of a page that the kernel asks this process for."""
    number = ctypes.CDLL(None, use_errno=True).syscall(CALLS[machine], 0x80000)
    if number < 0:
        print("none", flush=True)
        sys.exit()
    fcntl.ioctl(number, UFFDIO_API, struct.pack("<QQQ", 0xAA, 0, 0))
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    fcntl.ioctl(number, UFFDIO_REGISTER, struct.pack("<QQQQ", address, mmap.PAGESIZE, 1, 0))
    return page, address


def main(machine, offset):
    _page, address = silent_page(machine)
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    ctypes.c_uint64.from_address(get() + int(offset)).value = address
    print("ready", flush=True)
    sys.stdin.read()


main(*sys.argv[1:])
