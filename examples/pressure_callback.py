# SPDX-License-Identifier: Apache-2.0
"""Callbacks of your own: cheap ones first, what an event tells, and what becomes of an exception."""

import spyre_alloc

alloc = spyre_alloc.SpyreAllocator(capacity="4MiB", regions=1, gc=False)
scratch = [alloc.allocate("1MiB")]
weights = [alloc.allocate("1MiB") for _ in range(3)]
disk_full = False


def drop_scratch(event):
    print(f"attempt {event.attempt}: {event.requested} wanted, {event.free} of {event.total} free, "
          f"largest {event.largest_free}; dropping {len(scratch)} scratch buffers")
    scratch.clear()


def spill_weights(event):
    if disk_full:
        raise OSError("no space left on the disk that weights are spilled to")
    spilled = 0
    while weights and spilled < 2:
        weights.pop().free()
        spilled += 1
    print(f"attempt {event.attempt}: spilled {spilled} weights")


# The second runs only if the request still does not fit after the first.
alloc.register_memory_pressure_callback(drop_scratch, priority=0)
spilling = alloc.register_memory_pressure_callback(spill_weights, priority=10)

small = alloc.allocate("1MiB")
large = alloc.allocate("2MiB")

disk_full = True
try:
    alloc.allocate("3MiB")
except spyre_alloc.OutOfMemoryError as error:
    print(error)
    print(f"out of memory: {error.reason}, because of {error.__cause__!r}")

spilling.unregister()
print(f"still registered: {spilling.registered}; free, total: {alloc.memory_info()}")
