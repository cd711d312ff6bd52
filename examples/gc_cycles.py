# SPDX-License-Identifier: Apache-2.0
"""Buffers that only reference cycles keep alive come back when memory is short, and not before."""

import gc

import spyre_alloc


class Node:
    """Refers to itself, as a model refers to its layers and they to it."""

    def __init__(self, buffer):
        self.buffer = buffer
        self.me = self


gc.disable()  # so that no automatic collection helps: pressure collects nevertheless
alloc = spyre_alloc.SpyreAllocator(capacity="4MiB", regions=1)

served = 0
for _ in range(20):
    Node(alloc.allocate("1MiB"))  # garbage at once, and yet the memory is not free
    served += 1

stats = alloc.pressure_stats()
for name in ("events", "reclaims", "collections", "collections_skipped", "bytes_reclaimed"):
    print(f"{name:20} {stats[name]}")
print(f"{served} buffers served by {stats['collections']} collections, "
      f"{stats['out_of_memory']} out of memory")
