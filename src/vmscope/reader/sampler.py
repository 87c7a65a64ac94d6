"""The numbers of many VMs, sample after sample, in one buffer of int64."""

from __future__ import annotations

import sys
from itertools import count

from vmscope import native
from vmscope.errors import VMScopeError
from vmscope.reader.own import gather_all
from vmscope.reader.structure import swap, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from vmscope.reader.machine import VM

_WATCHED = words("i", [0, 8, 16, 24])  # the prologue's words: any change of structure shows there
_ATTEMPTS = 20  # times that a sample is begun anew before those that change are left out
_BIG = sys.byteorder == "big"


class Sampler:
    """Samples every number of the given VMs, or the chosen `columns` of each: places in its structure's order.
    Texts are left out, and VMs whose layout no VM would make.

    `vms` are those that are sampled; `index[i]` is where the numbers of `vms[i]` begin in the buffer, `names(i)`
    what they are. `lost` are the VMs whose region is gone, or changes without pause; they are no longer in `vms`.
    A VM that gets new counters is laid out anew, at the end of the sample that shows them: look at `layouts`, which
    counts that.
    """

    def __init__(self, vms: Sequence[VM], columns: Sequence[Sequence[int]] | None = None) -> None:
        self.vms: list[VM] = list(vms)
        self._columns = {} if columns is None else dict(zip(self.vms, columns, strict=True))
        self.lost: list[VM] = []
        self.index: list[int] = []
        self.layouts = 0
        self._buffer = self._watch = self._known = _room(0)
        self._jobs: list[tuple[native.Mapping, memoryview]] = []
        self._swapped: list[tuple[int, int]] = []
        self._lay_out()

    def names(self, position: int) -> list[str]:
        """The names of the numbers of one VM, in their order."""
        vm = self.vms[position]
        names = vm.reader.structure().names
        return [names[column] for column in self._columns[vm]] if self._columns else names

    def sample(self) -> memoryview:
        """Reads every number once. The buffer is overwritten by the next sample, unless there is a new layout."""
        for attempt in count():
            lost = self._gather(self._jobs, self._buffer, _WATCHED, self._watch)
            if not lost and self._watch == self._known:
                break
            if attempt >= _ATTEMPTS:
                lost += self._changed()
            for position in sorted(set(lost), reverse=True):
                self.lost.append(self.vms.pop(position))
            self._lay_out()
        for start, end in self._swapped:
            swap(self._buffer[start:end])
        return self._buffer.toreadonly()

    def _changed(self) -> list[int]:
        """The positions of VMs that have another structure than they were laid out for."""
        width = len(_WATCHED)
        places = [slice(width * position, width * (position + 1)) for position in range(len(self.vms))]
        return [position for position, place in enumerate(places) if self._watch[place] != self._known[place]]

    def _lay_out(self) -> None:
        """Looks at every structure, and makes the buffer for it."""
        self.layouts += 1
        self.index, self._jobs, self._swapped = [], [], []
        shared: dict[tuple[bytes, int], memoryview] = {}  # VMs of one kind have one layout: it then stays in the cache
        vms, self.vms = self.vms, []
        total = 0
        for vm in vms:
            try:
                structure = vm.reader.structure()
            except VMScopeError:
                self.lost.append(vm)
                continue
            offsets, columns = structure.offsets, self._columns.get(vm)
            key = offsets.tobytes(), id(columns)
            if not structure.plain or (columns and max(columns) >= len(offsets)):
                self.lost.append(vm)
                continue
            if key not in shared:
                shared[key] = offsets if columns is None else words("i", [offsets[column] for column in columns])
            offsets = shared[key]
            self.vms.append(vm)
            self.index.append(total)
            self._jobs.append((vm.reader.mapping, offsets))
            if structure.prologue.big != _BIG:
                self._swapped.append((total, total + len(offsets)))
            total += len(offsets)
        self._buffer = _room(total)
        self._gather = gather_all(mapping for mapping, _ in self._jobs)
        self._known = _room(len(_WATCHED) * len(self.vms))
        self._watch = _room(len(self._known))
        self._gather([(mapping, _WATCHED) for mapping, _ in self._jobs], self._known)


def _room(size: int) -> memoryview:
    """For `size` int64."""
    return memoryview(bytearray(8 * size)).cast("q")
