import os

kept = []


def close():
    os.closerange(3, 1 << 16)


def pipes():
    """Takes all numbers up to 70: what is ours no more among them."""
    kept.extend(os.pipe() for _ in range(34))
    for _, write in kept:
        os.write(write, b"program's")


def untouched():
    return all(os.read(read, 100) == b"program's" for read, _ in kept)
