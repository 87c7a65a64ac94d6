"""What every group of JNI's functions builds on."""

from __future__ import annotations

from vmscope.tool.jni.jni_errors import MisuseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.jni.bridge import NativeAgentBridge


class Group:
    """Its methods get their arguments as the table says, references as what they refer to."""

    def __init__(self, bridge: NativeAgentBridge) -> None:
        self.bridge = bridge
        self.jni = bridge.jni
        self._lent: dict[int, tuple[object, int]] = {}  # what memory was given out for, and how much, by its address

    def lend(self, data: bytes, thing: object, is_copy: int) -> int:
        """A copy of it that an agent gives back: its address. It says so where `is_copy` is one."""
        address = self.jni.allocate(data)
        self._lent[address] = thing, len(data)
        self.tell_copy(is_copy)
        return address

    def tell_copy(self, is_copy: int) -> None:
        if is_copy:
            self.jni.write(is_copy, b"\1")

    def lent(self, address: int) -> tuple[object, int]:
        """What it was given out for, and how many bytes it has: what has been given out may have grown since."""
        try:
            return self._lent[address]
        except KeyError:
            raise MisuseError(ValueError, f"{address:#x} was not given out, or has been given back") from None

    def take_back(self, address: int) -> None:
        del self._lent[address]
        self.jni.free(address)
