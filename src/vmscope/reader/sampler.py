"""The numbers of many VMs, sample after sample, in one buffer of int64."""

from __future__ import annotations

import sys
from array import array

from vmscope import native
from vmscope.errors import StaleRegion, VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from vmscope.reader.machine import VM

_WATCHED = array("q", [0, 8, 16, 24])  # the prologue's words: any change of structure shows there
_BIG = sys.byteorder == "big"


class Sampler:
    """Samples every number of the given VMs. Texts are left out, and VMs whose layout no VM would make.

    `vms` are those that are sampled; `index[i]` is where the numbers of `vms[i]` begin in the buffer, `names(i)`
    what they are. `lost` are the VMs whose region is gone; they are no longer in `vms`. A VM that gets new
    counters is laid out anew, at the end of the sample that shows them: look at `layouts`, which counts that.
    """

    def __init__(self, vms: Sequence[VM]) -> None:
        self.vms: list[VM] = list(vms)
        self.lost: list[VM] = []
        self.index: list[int] = []
        self.layouts = 0
        self._buffer = array("q")
        self._watch = array("q")
        self._known = array("q")
        self._jobs: list[tuple[native.Mapping, array[int]]] = []
        self._swapped: list[tuple[int, int]] = []
        self._lay_out()

    def names(self, position: int) -> list[str]:
        """The names of the numbers of one VM, in their order."""
        return self.vms[position].reader.structure().names

    def sample(self) -> memoryview:
        """Reads every number once. The buffer is overwritten by the next sample."""
        while True:
            lost = native.Mapping.gather_all(self._jobs, self._buffer)
            lost += native.Mapping.gather_all(self._watching, self._watch)
            if not lost and self._watch == self._known:
                break
            if lost:
                self._lose(sorted(set(lost)))
            self._lay_out()
        for start, end in self._swapped:
            part = self._buffer[start:end]
            part.byteswap()
            self._buffer[start:end] = part
        return memoryview(self._buffer)

    def _lose(self, positions: list[int]) -> None:
        for position in reversed(positions):
            self.lost.append(self.vms.pop(position))

    def _lay_out(self) -> None:
        """Looks at every structure, and makes the buffer for it."""
        self.layouts += 1
        self.index, self._jobs, self._swapped = [], [], []
        total = 0
        kept = []
        for vm in self.vms:
            try:
                structure = vm.reader.structure()
            except StaleRegion:
                self.lost.append(vm)
                continue
            except VMScopeError:
                self.lost.append(vm)
                continue
            if not structure.plain:
                self.lost.append(vm)
                continue
            kept.append(vm)
            self.index.append(total)
            self._jobs.append((vm.reader.mapping, structure.offsets))
            if structure.prologue.big != _BIG:
                self._swapped.append((total, total + len(structure.offsets)))
            total += len(structure.offsets)
        self.vms = kept
        self._buffer = array("q", bytes(8 * total))
        self._watching = [(mapping, _WATCHED) for mapping, _ in self._jobs]
        self._watch = array("q", bytes(8 * len(_WATCHED) * len(kept)))
        self._known = array("q", self._watch)
        native.Mapping.gather_all(self._watching, self._known)
