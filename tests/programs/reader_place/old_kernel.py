import ctypes
import errno
import os
import struct
import sys

from vmscope import native

libc = ctypes.CDLL(None, use_errno=True)
# Of all system calls openat2 (437 everywhere) is refused, as by an old kernel or a sandbox.
program = [(0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, 0x50000 | int(sys.argv[1])), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
filters = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filters, 0, 0) == 0, os.strerror(ctypes.get_errno())


def refusal(folder, name, flags):
    try:
        os.close(native.open_beneath(folder, name, flags))
    except OSError as error:
        return error.errno


folder, root = os.open(sys.argv[2], os.O_RDONLY), os.open("/", os.O_PATH)
before = os.listdir("/proc/self/fd")
fd = native.open_beneath(folder, "file", os.O_RDONLY)
assert os.read(fd, 100) == b"content" and not os.get_inheritable(fd)
os.close(fd)
os.close(native.open_beneath(folder, "directory", os.O_RDONLY | os.O_DIRECTORY))
found = [
    refusal(folder, "none", 0),
    refusal(folder, "link", 0),
    refusal(folder, "link", os.O_PATH),
    refusal(folder, "file", os.O_DIRECTORY),
    refusal(root, "proc", os.O_PATH),
    refusal(root, "proc", 0),
]
assert found == [errno.ENOENT, errno.ELOOP, errno.ELOOP, errno.ENOTDIR, errno.EXDEV, errno.EXDEV], found
assert os.listdir("/proc/self/fd") == before
