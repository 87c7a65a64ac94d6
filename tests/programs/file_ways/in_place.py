import os

from tests.programs.sandbox import IMAGE, _directory, _file, answer

seen = []
write = os.write


def watched(fd, data):
    seen.append(open(path, "rb").read()[7:8])
    done = write(fd, data[:4096])
    seen.append(open(path, "rb").read()[7:8])
    return done


os.write = watched
with _directory.open_directory() as directory:
    path = f"{directory.path}/{os.getpid()}"
    file = _file.RegionFile()
    _file._in_place(directory, str(os.getpid()), path, IMAGE, file)
os.write = write
answer(before=sorted({flag.hex() for flag in seen}), after=open(path, "rb").read()[7], count=len(seen))
