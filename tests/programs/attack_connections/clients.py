import resource
import socket
import sys

path, count = sys.argv[1], int(sys.argv[2])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
clients = []


def come():
    # As many as are taken, with half a request each; how many that is.
    for _ in range(count):
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        try:
            client.connect(path)
            client.send(b"1\0jcmd\0VM.ver")
        except OSError:
            client.close()
        else:
            clients.append(client)
    return len(clients)


def go_on():
    # How many are answered, and how many have been closed.
    answers = []
    for client in clients:
        client.settimeout(30)
        answer = b""
        try:
            client.sendall(b"sion\0\0\0")
            while part := client.recv(1 << 16):
                answer += part
        except OSError:
            pass
        answers.append(answer.startswith(b"0\nCPython"))
        client.close()
    clients.clear()
    return answers.count(True), answers.count(False)


def leave():
    while clients:
        clients.pop().close()


print("ready", flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
