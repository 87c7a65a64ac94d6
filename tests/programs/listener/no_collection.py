import _thread
import gc

from vmscope.commands import registry

gc.set_threshold(500, 5, 5)
where: set[int] = set()
gc.callbacks.append(lambda phase, info: where.add(_thread.get_ident()))
ident = _thread.get_ident()


def make(out):
    for _ in range(10_000):
        [].append([])  # type: ignore[arg-type]
    assert [[] for _ in range(10_000)]


registry.register(registry.Command("Test.make", "Makes a lot.", make))
