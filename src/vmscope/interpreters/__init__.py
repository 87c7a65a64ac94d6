"""CPython interpreters of other processes, which were not prepared: their threads' stacks, read from outside.

Nothing is asked of the process, nothing in it is stopped or changed. What it has in its memory may be wrong on purpose.
"""

from __future__ import annotations

from vmscope.interpreters.profile import Profile, Sampled, profile_unprepared
from vmscope.interpreters.stacks import Frame, Local, Stacks, Thread

__all__ = ["Frame", "Local", "Profile", "Sampled", "Stacks", "Thread", "profile_unprepared"]
