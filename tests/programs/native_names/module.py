größe = 1


def plain(a, b=2, /, c=3, *rest, d, e=4, **more):
    x = a
    return x


async def waits(a): ...


def yields():
    yield


class 𐐀:
    feld = 1

    def __init__(self, artikel): ...
    def ask(self): ...
    @classmethod
    def made(cls): ...
    @staticmethod
    def helper(𐐀): ...
    @property
    def size(self):
        return 1

    class Line:
        def __eq__(self, other):
            return True
