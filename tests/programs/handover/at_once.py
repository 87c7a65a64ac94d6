import os
import socket

mine = socket.socketpair()  # nothing comes there
numbers = set(range(3, 71))


def at_once():
    """Closes everything, takes the numbers, forks."""
    kept = {each.fileno() for each in mine}
    for fd in set(range(3, 1024)) - kept:
        try:
            os.close(fd)
        except OSError:
            pass
    for fd in numbers - kept:
        os.dup2(mine[0].fileno(), fd)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0 and untouched()


def untouched():
    inode = os.fstat(mine[0].fileno()).st_ino
    return all(os.fstat(fd).st_ino == inode for fd in numbers - {mine[1].fileno()})
