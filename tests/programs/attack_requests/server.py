import _socket
import array
import os

path = f"/tmp/.java_pid{os.getpid()}"
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.bind(path)
os.chmod(path, 0o600)
server.listen()
print("ready", flush=True)
fd, _ = server._accept()  # type: ignore[attr-defined]
os.unlink(path)
client = _socket.socket(fileno=fd)
client.recv(100)
try:
    client.sendmsg([b"0\nwith a descriptor\n"], [(_socket.SOL_SOCKET, 1, array.array("i", [1]))])
except PermissionError:
    client.send(b"0\nrefused\n")
client.close()
input()
