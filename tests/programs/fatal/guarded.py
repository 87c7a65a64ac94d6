from vmscope import native

file = open("cut", "w+b")
file.truncate(1 << 16)
mapping = native.Mapping(file.fileno(), 1 << 16)
file.truncate(0)


def read():
    try:
        mapping.read(0, 1 << 16)
    except OSError:
        return
    raise AssertionError("a page that is gone was read")
