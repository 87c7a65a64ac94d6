"""DataDumpRequest: SIGQUIT, as Ctrl-\\ sends it, while the event is wanted and the signal's action is its default."""

from __future__ import annotations

import _thread
import signal

from vmscope import own_threads
from vmscope.tool.spec.events import Event, bit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.host import Host

WANTED = bit(Event.DATA_DUMP_REQUEST)


class DataDumpSignal:
    """The mechanism. Only the main thread may change what a signal does: wanted or not wanted any more by another one,
    the change is made with the next one that the main thread makes."""

    def __init__(self) -> None:
        self._host: Host | None = None

    def update(self, host: Host) -> None:
        wanted = bool(host.wanted() & WANTED)
        if wanted == (self._host is not None) or not hasattr(signal, "SIGQUIT") or not on_main_thread():
            return
        if wanted and signal.getsignal(signal.SIGQUIT) == signal.SIG_DFL:
            self._host = host
            signal.signal(signal.SIGQUIT, self.requested)
        elif not wanted:
            self._host = None
            if signal.getsignal(signal.SIGQUIT) == self.requested:
                signal.signal(signal.SIGQUIT, signal.SIG_DFL)

    def requested(self, number: int, frame: object) -> None:
        """The signal has come."""
        if self._host is not None:
            self._host.post(Event.DATA_DUMP_REQUEST)


def on_main_thread() -> bool:
    """Without importing `threading`, which would take the calling thread for the main one."""
    threading = own_threads.threading_module()
    return threading is None or threading.main_thread().ident == _thread.get_ident()
