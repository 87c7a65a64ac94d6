import socket
import sys

path = "/tmp/.java_pid" + sys.argv[1]
try:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
except PermissionError:
    print("refused", flush=True)
sys.stdin.readline()
print("ready", flush=True)
while True:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
            client.send(b"1\0")
        except OSError:
            pass
