"""What a client of the attach protocol is answered: a status in decimal, a line feed, and the body."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from vmscope.native import StackSnapshot

    class Call(Protocol):
        """A request as the listener hands it over."""

        @property
        def operation(self) -> str: ...
        @property
        def options(self) -> str: ...
        @property
        def arguments(self) -> tuple[str, ...]: ...
        @property
        def snapshot(self) -> StackSnapshot | None: ...
        def write(self, data: bytes, /) -> object: ...
        def flush(self) -> object: ...


PROGRESS = "progress"  # an option: lines with a # in front, before the status, say how far a command is
_ENOUGH = 64 << 10  # characters that are gathered before they are sent


class Reply:
    """A command's Output: the status goes in front of the first part that is sent."""

    __slots__ = ("_call", "_length", "_parts", "_status", "progress_to", "snapshot")

    def __init__(self, call: Call) -> None:
        self._call = call
        self.progress_to: Call | None = call if call.options == PROGRESS else None
        self.snapshot = call.snapshot  # of the threads, as of the request
        self._parts: list[str] = []
        self._length = 0
        self._status = "0\n"  # "" once it is on its way

    def write(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
        if self._length > _ENOUGH:
            self._send()

    def flush(self) -> None:
        """What was written goes to the client now; from then on the operation is a good one."""
        self._send()
        self._call.flush()

    def progress(self, text: str) -> None:
        """How far it is, at once. A client that asks for progress gets it in front of the status; others with the
        status of a success, so a command writes none before it can no longer fail."""
        if self.progress_to is not None and self._status:
            self._call.write(f"#{text}\n".encode(errors="backslashreplace"))
            self._call.flush()
        else:
            self.write(f"{text}\n")
            self.flush()

    def fail(self, message: str) -> None:
        """The last line, with a status that says so where none has gone yet."""
        if self._status:
            self._status = "-1\n"
        self.write(f"{message}\n")

    def _send(self) -> None:
        text = "".join([self._status, *self._parts])
        self._status, self._parts, self._length = "", [], 0
        self._call.write(text.encode(errors="backslashreplace"))
