"""Giving a region its file: directory, stale files, creation, and the mirror's address."""

from __future__ import annotations

import os

from vmscope.memory import _directory, _file, _stale
from vmscope.memory.region import Region


def open_file(region: Region) -> None:
    """Makes the file of this process and tells the mirror. Raises VMScopeError where there can be none."""
    pid = os.getpid()
    with _directory.open_directory() as directory:
        _stale.clean(directory, pid)
        region.file = _file.create(directory, pid, region.mirror.image)
    region.mirror.set_file(os.fsencode(region.file.path), region.file.device, region.file.inode)
