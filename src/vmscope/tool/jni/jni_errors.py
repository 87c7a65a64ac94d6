"""What an agent does wrong with JNI, and what comes of it."""

from __future__ import annotations


class MisuseError(Exception):
    """A call that no correct agent makes. With `-Xcheck:jni` it is logged; without, `pending` is pending."""

    def __init__(self, pending: type[Exception], text: str) -> None:
        super().__init__(text)
        self.pending = pending
