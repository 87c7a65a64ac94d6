"""JNI's functions about memory of an agent's that Python sees: a memoryview is a direct ByteBuffer."""

from __future__ import annotations

from vmscope.tool.jni.base import Group
from vmscope.tool.model import introspection

LARGEST = (1 << 31) - 1
NONE = -1


class Buffers(Group):
    def new_direct_byte_buffer(self, address: int, capacity: int) -> memoryview | None:
        """The agent sees to it that the memory stays. None for a null pointer."""
        if not 0 <= capacity <= LARGEST:
            raise ValueError(f"a buffer has no capacity of {capacity}")
        if not address:
            return None
        return self.jni.view(address, capacity)

    def get_direct_buffer_address(self, buffer: object) -> int:
        return self.jni.address(buffer) if introspection.is_a(buffer, memoryview) else 0

    def get_direct_buffer_capacity(self, buffer: object) -> int:
        return len(buffer) if introspection.is_a(buffer, memoryview) else NONE
