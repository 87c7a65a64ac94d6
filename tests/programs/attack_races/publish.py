import os
import sys

from vmscope.errors import VMScopeError
from vmscope.memory import _directory, _file, _stale

tmp, ways = sys.argv[1:]
for way in ("_unnamed", "_beside")[: int(ways)]:
    setattr(_file, way, lambda *_: None)
print("ready", flush=True)
sys.stdin.readline()
try:
    with _directory.open_directory(tmp=tmp) as directory:
        _stale.clean(directory, os.getpid())
        file = _file.create(directory, os.getpid(), bytes(65536))
        found = os.stat(str(os.getpid()), dir_fd=directory.fd, follow_symlinks=False)
    assert (found.st_uid, found.st_ino) == (0, file.inode), found
    file.unlink()
except (VMScopeError, OSError) as error:
    print(error, flush=True)
