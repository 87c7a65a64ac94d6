import errno
import os
import socket

mine = socket.socketpair()  # nothing comes there
numbers = set(range(3, 71))


def take(fd):
    """A number that another thread is just being given is busy: it is taken once that is over."""
    while True:
        try:
            return os.dup2(mine[0].fileno(), fd)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise


def at_once():
    """Closes everything, takes the numbers, forks."""
    kept = {each.fileno() for each in mine}
    for fd in set(range(3, 1024)) - kept:
        try:
            os.close(fd)
        except OSError:
            pass
    for fd in numbers - kept:
        take(fd)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0 and untouched()


def untouched():
    inode = os.fstat(mine[0].fileno()).st_ino
    return all(os.fstat(fd).st_ino == inode for fd in numbers - {mine[1].fileno()})
