"""Collapsed stacks: a line for each, its frames with semicolons between them, and its weight."""

from __future__ import annotations

from vmscope.terminal import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.flight.convert.profile import Profile


def collapsed(profile: Profile) -> bytes:
    """The file's bytes, the lines sorted."""
    names = [printable(name).replace(";", ",") for name, _ in profile.frames]
    lines = [f"{';'.join(names[frame] for frame in stack)} {weight}\n" for stack, weight in profile.merged().items()]
    return "".join(sorted(lines)).encode("utf-8", "backslashreplace")
