"""Why this process has no socket for clients to attach to. What opens one is in `runtime`: each start pays for it."""

from __future__ import annotations

import os
from errno import EADDRINUSE

from vmscope.errors import ListenerError


def refusal(error: Exception, path: str) -> ListenerError:
    """What went wrong on the way to the socket `path`, and what can be done about it."""
    if not isinstance(error, OSError):
        return ListenerError(str(error) or "no memory for the listener", path=path, hint="vmscope.stop(), then start()")
    if error.errno == EADDRINUSE:
        return ListenerError(
            f"{path} is in use by another VM of the same pid, as in a container that shares {os.path.dirname(path)}",
            path=path,
            hint=f"give each container a {os.path.dirname(path)} of its own, or the host's pid namespace",
        )
    return ListenerError(f"cannot make {path}: {error.strerror}", path=path, hint=f"have its owner remove {path}")
