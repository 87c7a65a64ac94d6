"""Every counter of this process by name, whether or not there is a region to show it."""

from __future__ import annotations

import os
from _thread import RLock

from vmscope import native
from vmscope.counters.kinds import (
    EXEMPLAR_CAPACITY,
    FLOAT,
    NONE,
    RECENT,
    TICKS,
    TIME,
    Alias,
    Constant,
    Counter,
    FloatGauge,
    Gauge,
    Histogram,
    RecentFloatGauge,
    RecentGauge,
    Text,
)
from vmscope.errors import CounterExistsError, CounterNameError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from vmscope.memory.region import Region

    AnyCounter = Counter | Gauge | FloatGauge | Histogram | Text | Constant | Alias


class Registry:
    """Names to counters, in the order in which they were made; and the region that shows them, or None.

    The lock is reentrant: a signal handler or a destructor may make a counter while one is being made.
    """

    def __init__(self) -> None:
        self._counters: dict[str, AnyCounter] = {}
        self._parts: dict[str, Any] = {}  # by the names of entries that are not their own
        self._fractions: dict[str, Any] = {}  # by name, those that have an entry for what is not whole
        self._shown: dict[str, object] = {}  # of these, those whose second entry is in the region
        self._exemplars: dict[str, dict[int, Text]] = {}  # by name, among whose they are
        self._region: Region | None = None
        self._lock = RLock()

    def __iter__(self) -> Iterator[AnyCounter]:
        return iter(tuple(self._counters.values()))

    def get(self, name: str) -> AnyCounter | None:
        return self._counters.get(name)

    def counter(self, name: str, *, units: int = NONE) -> Counter:
        """The counter of this name, a number that only grows. `units` is one of `vmscope.Units`.

        The same name gives the same counter. Raises CounterNameError for a name that is not printable ASCII without
        blanks, CounterExistsError for one that another kind of counter has, or one in other units.
        """
        found = self._counters.get(name)
        if found is None:
            found = self._add(Counter(_checked(name), units, self))
        if type(found) is not Counter or found.units != units:
            raise _exists(found, "counter")
        return found

    def gauge(self, name: str, *, units: int = NONE) -> Gauge:
        """The gauge of this name, a number that goes up and down. Raises as `counter` does."""
        found = self._counters.get(name)
        if found is None and (mark := _recent_mark(name)):
            recent = RecentGauge(_checked(name), units, self)
            recent.set_at = self.gauge(name.replace(mark, mark + TIME, 1))
            found = self._add(recent)
        elif found is None:
            found = self._add(Gauge(_checked(name), units, self))
        if not isinstance(found, Gauge) or found.units != units:
            raise _exists(found, "gauge")
        return found

    def float_gauge(self, name: str, *, units: int = NONE) -> FloatGauge:
        """The gauge of this name whose value is a float. Its entry is called `name#f64`. Raises as `counter` does."""
        found = self._counters.get(name)
        if found is None and (mark := _recent_mark(name)):
            recent = RecentFloatGauge(_checked(name), units, self)
            recent.set_at = self.gauge(name.replace(mark, mark + TIME, 1))
            found = self._add(recent)
        elif found is None:
            found = self._add(FloatGauge(_checked(name), units, self))
        if not isinstance(found, FloatGauge) or found.units != units:
            raise _exists(found, "gauge of floats")
        return found

    def histogram(self, name: str, *, bounds: Iterable[float], units: int = TICKS) -> Histogram:
        """The histogram of this name, which counts values up to each of 1 to 100 growing `bounds`.

        `units` are those of `bounds` and of what is observed; TICKS, the default, are given as seconds::

            delay = vmscope.histogram("shop.delay", bounds=[0.001, 0.01, 0.1, 1])
            delay.observe(0.25)
            with delay.time():  # or @delay.time()
                work()

        Raises ValueError for bounds that do not grow or are not finite, TypeError for those that are not numbers,
        the rest as `counter` does.
        """
        wanted = tuple(bounds)
        found = self._counters.get(name)
        if found is None:
            found = self._add(Histogram(_checked(name), wanted, units, self))
        if type(found) is not Histogram or (found.bounds, found.units) != (tuple(map(float, wanted)), units):
            raise _exists(found, "histogram")
        return found

    def text(self, name: str, *, capacity: int = 64) -> Text:
        """The text of this name, of at most `capacity` bytes of UTF-8. Raises as `counter` does."""
        found = self._counters.get(name)
        if found is None:
            found = self._add(Text(_checked(name), capacity))
        if type(found) is not Text or found.capacity != capacity:
            raise _exists(found, "text")
        return found

    def constant(
        self, name: str, value: int | str, *, units: int = NONE, limit: int = 1024, made: list[Any] | None = None
    ) -> Constant:
        """The constant of this name, a number of 64 bits or a text of which `limit` bytes are kept.

        Raises as `counter` does, CounterExistsError also for another value. A new one is put into `made` before it can
        be found here: what an exception interrupts can be undone.
        """
        wanted = Constant(_checked(name), value, units, limit)
        found = self._counters.get(name)
        if found is None:
            if made is not None:
                made.append(wanted)
            found = self._add(wanted)
        if type(found) is not Constant or (found.value, found.units) != (wanted.value, wanted.units):
            raise _exists(found, "constant")
        return found

    def alias(self, name: str, of: Counter | Gauge | Text | Constant, *, made: list[Any] | None = None) -> Alias:
        """A second name for a counter. Raises as `counter` does; `made` as for `constant`."""
        found = self._counters.get(name)
        if found is None:
            wanted = Alias(_checked(name), of)
            if made is not None:
                made.append(wanted)
            found = self._add(wanted)
        if type(found) is not Alias or found.of is not of:
            raise _exists(found, "alias")
        return found

    def numbers(self) -> Iterator[tuple[str, int, int, int]]:
        """Name, value, units and variability of every entry that has a number, now."""
        entries = [entry for counter in self for entry in counter.entries()]
        entries += [counter.fraction() for counter in tuple(self._fractions.values())]
        for name, value, units, variability, *_ in entries:
            if isinstance(value, int):
                yield name, value, units, variability

    def attach(self, region: Region, first: Sequence[AnyCounter] = ()) -> None:
        """Shows every counter in `region`, now and from now on; those of `first` before the others."""
        with self._lock:
            ordered: dict[str, AnyCounter] = {counter.name: counter for counter in first}
            ordered |= self._counters  # nothing is called from here to the next line: no counter comes in between
            self._region, self._shown = region, {}
            for counter in ordered.values():
                region.allocate(counter.entries())
            for each in tuple(self._fractions.values()):
                self._allocate_fraction(each)

    def detach(self) -> None:
        """The region is about to go; the counters stay."""
        with self._lock:
            self._region = None

    def forget(self, counters: Iterable[AnyCounter]) -> None:
        """These may be made anew with other values. Only when there is no region."""
        with self._lock:
            for counter in counters:
                if self._counters.get(counter.name) is counter:
                    del self._counters[counter.name]
                    if self._fractions.pop(counter.name, None) is not None:
                        self._shown.pop(counter.name, None)
                    for name in [name for name, owner in self._parts.items() if owner is counter]:
                        del self._parts[name]

    def after_fork(self) -> None:
        """In a forked child: numbers start from zero, constants and texts stay; the region was the parent's."""
        self._lock = RLock()
        self._region = None
        self._fractions = {}
        exemplars, self._exemplars = self._exemplars, {}  # the parent's
        for name, kept in exemplars.items():
            kept.clear()
            self._counters.pop(name, None)
        native.reset_slots(self._counters)

    def show_fraction(self, counter: Any) -> None:
        """An amount that is not whole is about to be added to a counter: it has a second entry from now on."""
        with self._lock:
            name = counter.name + FLOAT
            if name in self._counters or self._parts.setdefault(name, counter) is not counter:
                return  # a counter of the program's has that name: the fractions count unseen
            self._fractions[counter.name] = counter
            self._allocate_fraction(counter)

    def _allocate_fraction(self, counter: Any) -> None:
        mark = object()  # a signal handler that comes in between finds another one's
        if self._region is not None and self._shown.setdefault(counter.name, mark) is mark:
            self._region.allocate((counter.fraction(),))

    def keep_exemplar(self, kept: dict[int, Text], place: int, name: str, text: str) -> None:
        """Shows an exemplar in place of the last one, where it fits. `kept` are those of one counter."""
        if len(text.encode("utf-8", "replace")) > EXEMPLAR_CAPACITY:
            return
        found = kept.get(place)
        if found is None:
            try:
                found = self.text(name, capacity=EXEMPLAR_CAPACITY)
            except CounterExistsError:  # a counter of the program's has that name
                return
            self._exemplars[name] = kept
            kept[place] = found
        found.set(text)

    def add(self, counter: Any) -> Any:
        """Puts in a counter, or gives what has its name: one of a kind of its own, with `name` and `entries()`."""
        return self._add(counter)

    def _add(self, counter: Any) -> Any:
        with self._lock:
            parts = self._parts
            if counter.name in parts:
                raise CounterExistsError(
                    f"{counter.name} is an entry of the {_kind(parts[counter.name])} {parts[counter.name].name}",
                    hint="choose another name",
                )
            found = self._counters.setdefault(counter.name, counter)
            if isinstance(counter, Histogram | FloatGauge) and found is counter:
                self._claim(counter)
            if found is counter and self._region is not None:
                self._region.allocate(counter.entries())
            return found

    def _claim(self, counter: Histogram | FloatGauge) -> None:
        """Nothing else can be called as its entries are."""
        names = [entry[0] for entry in counter.entries()]
        for name in names:
            if name in self._counters or name in self._parts:
                del self._counters[counter.name]
                raise CounterExistsError(
                    f"{name} exists, as which the {_kind(counter)} {counter.name} would need an entry",
                    hint="choose another name",
                )
        self._parts.update(dict.fromkeys(names, counter))


def _recent_mark(name: str) -> str:
    """The mark that has a gauge note when it is set; "" for none."""
    return next((mark for mark in RECENT if mark in name and mark + TIME not in name), "")


def _checked(name: str) -> str:
    if not name or not name.isascii() or not name.isprintable() or " " in name:
        raise CounterNameError(f"counter name {name!r} is not printable ASCII without blanks; choose another")
    return name


def _exists(found: AnyCounter, wanted: str) -> CounterExistsError:
    return CounterExistsError(
        f"{found.name} exists as a {_kind(found)} and cannot be this {wanted}",
        hint="choose another name, or ask for it as it is",
    )


def _kind(counter: AnyCounter) -> str:
    return "gauge of floats" if type(counter) is FloatGauge else type(counter).__name__.lower()


REGISTRY = Registry()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=REGISTRY.after_fork)
