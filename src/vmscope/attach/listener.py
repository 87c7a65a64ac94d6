"""This process's side of the attach protocol: where its socket is, and who serves what comes.

The socket is there from the start, so that no client has to send a signal; and where the program leaves SIGQUIT at
its default, a client that finds the socket gone may ask for it in the JDK's way, by `.attach_pidN` and SIGQUIT.
"""

from __future__ import annotations

import os
from errno import EADDRINUSE

from vmscope import later, native
from vmscope.errors import ListenerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

TMP = "/tmp"  # whatever TMPDIR says: the JDK's tools look nowhere else
_TIMEOUT = 1_000_000_000  # ns: the longest that a command under way may hold up the end


class Listener:
    """The open listener of this process; `path` is its socket's. `serve(call)` is called for one request after another,
    on a thread of ours, with the GIL; ListenerError where there can be no socket.
    """

    __slots__ = ("_native", "path")

    def __init__(self, serve: Callable[[native.Call], object], *, handshake: bool = True) -> None:
        self.path = f"{TMP}/.java_pid{os.getpid()}"
        self._native = native.Listener(lambda call: later.without_collection(lambda: serve(call)))
        try:
            self._native.open(os.fsencode(self.path), os.fsencode(f"{self.path}.tmp"))
        except OSError as error:
            raise _refusal(error, self.path) from error
        if handshake:
            native.take_attach_signal()

    def close(self, *, last: bool = False) -> None:
        """Takes the socket away. A command under way may end, within a second; at the `last` moment nothing else is
        waited for."""
        if not last:
            native.leave_attach_signal()
        self._native.close(_TIMEOUT, last)


def _refusal(error: OSError, path: str) -> ListenerError:
    """Why there is no socket, by the errno of whatever went wrong on the way to it."""
    if error.errno == EADDRINUSE:
        return ListenerError(
            f"{path} is in use by another VM of the same pid, as in a container that shares {TMP}",
            path=path,
            hint=f"give each container a {TMP} of its own, or the host's pid namespace",
        )
    return ListenerError(f"cannot make {path}: {error.strerror}", path=path, hint=f"rm -r {path}, as whoever owns it")
