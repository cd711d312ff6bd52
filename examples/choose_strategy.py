# SPDX-License-Identifier: Apache-2.0
"""One program, two strategies: the choice is a word, and nothing else changes."""

import spyre_alloc


def fill_and_ask_for_more(strategy):
    alloc = spyre_alloc.SpyreAllocator(strategy, capacity="4MiB", regions=1)

    cache = []

    def drop_cache(event):
        print(f"{strategy}: {event.requested} wanted, {event.free} free: "
              f"{len(cache)} cached buffers dropped")
        cache.clear()

    alloc.register_memory_pressure_callback(drop_cache)

    while len(cache) < 4:
        cache.append(alloc.allocate("1MiB"))
    tensor = alloc.allocate("2MiB")

    pressure = alloc.pressure_stats()
    print(f"{strategy}: {tensor.nbytes} at {tensor.address:#x} after {pressure['events']} event "
          f"and {pressure['reclaims']} reclaim")


fill_and_ask_for_more("hold-mutex")
fill_and_ask_for_more("release-condvar")
