# In a /tmp of its own: `cover` mounts a device over the region's file, as every user may in a namespace of his own.
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)


def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "done"


def note(name, text):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)


ids = os.getuid(), os.getgid()
call(libc.unshare(0x10020000))  # CLONE_NEWUSER, CLONE_NEWNS
note("setgroups", "deny")
note("uid_map", f"0 {ids[0]} 1")
note("gid_map", f"0 {ids[1]} 1")
call(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
os.mkdir("/tmp/hsperfdata_shop", 0o755)
region = b"/tmp/hsperfdata_shop/%d" % os.getpid()
with open(region, "wb") as file:
    file.write(bytes(4096))


def cover(path):
    return call(libc.mount(path.encode(), region, None, 4096, None))  # MS_BIND


def uncover():
    return call(libc.umount2(region, 2))  # MNT_DETACH


print("ready", flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
