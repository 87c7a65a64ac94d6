"""GC.heap_info: what the allocators and the garbage collector know of the heap."""

from __future__ import annotations

import gc

from vmscope import native, own_threads
from vmscope.commands.registry import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output

KILO = 1024


def run(out: Output) -> None:
    fields = look()
    if "pools.capacity" in fields:  # not without the extension, nor with another allocator
        total, used = fields["pools.capacity"] // KILO, fields["pools.bytes"] // KILO
        out.write(f" pymalloc heap   total {total}K, used {used}K\n")
        out.write(f"  {fields['pools.arenas']} arenas, {fields['pools.blocks']} blocks\n")
    if "malloc.capacity" in fields:
        total, used = fields["malloc.capacity"] // KILO, fields["malloc.used"] // KILO
        out.write(f" malloc heap     total {total}K, used {used}K\n")
        out.write(f"  {fields['malloc.mapped'] // KILO}K in mappings of their own\n")
    out.write(f" collector       {'enabled' if gc.isenabled() else 'disabled'}, {len(gc.garbage)} uncollectable\n")
    for number, (count, threshold, stats) in enumerate(
        zip(gc.get_count(), own_threads.thresholds(), gc.get_stats(), strict=True)
    ):
        out.write(
            f"  generation {number} count {count}, threshold {threshold}, {stats['collections']} collections, "
            f"{stats['collected']} collected\n"
        )
    if frozen := gc.get_freeze_count():
        out.write(f"  frozen {frozen} objects\n")
    peak, virtual = fields["memory.peak"] // KILO, fields["memory.virtual"] // KILO
    out.write(f" process         resident {fields['memory.resident'] // KILO}K, peak {peak}K, virtual {virtual}K\n")


def look() -> dict[str, int]:
    """What the sampler sees of memory, as of now."""
    names = [name for name in native.SAMPLED if name.startswith(("pools.", "malloc.", "memory."))]
    slots = {name: native.LongSlot() for name in names}
    native.Sampler(slots).sample()
    return {name: slot.value for name, slot in slots.items()}


COMMANDS = (
    Command(
        "GC.heap_info",
        "What the allocators and the garbage collector know of the heap.",
        run,
        impact="Medium: two milliseconds at most, without the GIL.",
    ),
)
