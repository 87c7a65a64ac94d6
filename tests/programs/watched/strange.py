import ctypes
import mmap
import os
import signal
import socket
import sys
import threading

signal.signal(signal.SIGUSR1, print)
kept = [socket.socket(socket.AF_UNIX), socket.socket(), mmap.mmap(-1, 4096, prot=7), open("/etc/passwd")]
kept[0].bind("\0strange")  # type: ignore[attr-defined]
kept[1].bind(("0.0.0.0", 4711))  # type: ignore[attr-defined]
kept[1].listen()  # type: ignore[attr-defined]
os.set_inheritable(kept[3].fileno(), True)  # type: ignore[attr-defined]
open("made", "w").close()
kept.append(os.open("made", os.O_RDWR))
os.truncate("made", 4096)
kept.append(mmap.mmap(kept[-1], 4096))  # type: ignore[arg-type]
os.rename("made", "renamed")
os.mkdir("folder")
os.rmdir("folder")
threading.Thread(target=sys.stdin.read, name=open("/proc/self/comm").read().rstrip()).start()  # 3.14 tells the kernel
print("ready", flush=True)
