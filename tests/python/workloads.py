# SPDX-License-Identifier: Apache-2.0
"""Threads under pressure whose live data always fits: whatever fails there fails falsely.

Run as a program: workloads.py STRATEGY EVENTS [SWITCH_INTERVAL [CORE]]
"""

import gc
import os
import sys
import threading

import spyre_alloc
from support import BLOCK, DEADLINE, Task, Thing, pressure, small


def churn_garbage(alloc, stop, nbytes=BLOCK):
    """Leaves every buffer in a cycle; at most one is alive. Returns how many requests failed."""
    failures = 0
    while not stop():
        try:
            thing = Thing(buffer=alloc.allocate(nbytes))
            thing.me = thing
        except spyre_alloc.OutOfMemoryError:
            failures += 1
        thing = None
    return failures


def hold_steadily(alloc, stop, live=2, nbytes=BLOCK):
    """Replaces buffers one by one, never holding more than `live`."""
    failures = 0
    kept = [None] * live
    turn = 0
    while not stop():
        kept[turn] = None
        try:
            kept[turn] = alloc.allocate(nbytes)
        except spyre_alloc.OutOfMemoryError:
            failures += 1
        turn = (turn + 1) % live
    return failures


def run(alloc, events, garbage=4, steady=0, native=0):
    """Runs until so many pressure events; false failures of all threads together."""
    enough = threading.Event()
    workers = [spyre_alloc.NativeWorker(alloc, BLOCK) for _ in range(native)]
    tasks = [Task(churn_garbage, alloc, enough.is_set) for _ in range(garbage)]
    tasks += [Task(hold_steadily, alloc, enough.is_set) for _ in range(steady)]
    while pressure(alloc, "events") < events and any(task.is_alive() for task in tasks):
        enough.wait(0.01)
    enough.set()
    failures = sum(task.result() for task in tasks)
    for worker in workers:
        worker.stop()
    return failures + sum(worker.out_of_memory for worker in workers)


def main(strategy, events, switch_interval="0.005", core=None):
    if core is not None:
        os.sched_setaffinity(0, {int(core)})
    sys.setswitchinterval(float(switch_interval))
    gc.freeze()  # collections take microseconds then
    alloc = small(strategy, blocks=16, max_wait=DEADLINE)
    failures = run(alloc, int(events), garbage=4, steady=1, native=1)
    alloc.check_invariants()
    print(failures, pressure(alloc, "events", "out_of_memory", "timeouts", "reclaims"))


if __name__ == "__main__":
    main(*sys.argv[1:])
