# SPDX-License-Identifier: Apache-2.0
"""A C++ thread that never saw Python allocates under pressure while Python threads run.

What is in its way is cyclic garbage of the Python threads, so that thread itself attaches to the
interpreter, collects, and detaches again. See calibrator.cpp.
"""

import collections
import gc
import threading
import time

import calibrator
import spyre_alloc

alloc = spyre_alloc.SpyreAllocator(capacity="1MiB", regions=1, max_wait=30.0)
reclaims_by_thread = collections.Counter()
alloc.register_memory_pressure_callback(
    lambda event: reclaims_by_thread.update([threading.get_ident()])
)
gc.disable()  # so that memory comes back under pressure only
full = threading.Event()
stop = threading.Event()


def litter():
    while not stop.is_set():
        cycle = [alloc.try_allocate("64KiB")]
        if cycle[0] is None:  # they leave reclaiming to the native thread
            full.set()
            time.sleep(0.0001)
        cycle.append(cycle)  # freed by the cyclic garbage collector and by nothing else


threads = [threading.Thread(target=litter) for _ in range(2)]
for thread in threads:
    thread.start()
full.wait()

served, failed = calibrator.calibrate(alloc._capsule(), 64 * 1024, 1000)

stop.set()
for thread in threads:
    thread.join()

own = sum(reclaims_by_thread.values()) - sum(reclaims_by_thread[t.ident] for t in threads)
stats = alloc.pressure_stats()
print(f"{stats['events']} events, {stats['reclaims']} reclaims, {stats['collections']} collections")
print(f"native thread: {served} blocks, {failed} failures, {own} reclaims of its own")
