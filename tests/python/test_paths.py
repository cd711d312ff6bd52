# SPDX-License-Identifier: Apache-2.0
"""The three ways into the allocator: a Python thread, a callback, and a thread without Python."""

import sys
import threading
import time

import pytest
import spyre_alloc
import workloads
from support import (
    BLOCK,
    DEADLINE,
    SLOWNESS,
    Task,
    Thing,
    eventually,
    failure,
    fill,
    litter,
    pressure,
    reached,
    small,
)


@pytest.fixture
def gil_is_never_taken_away():
    """Threads change only where one gives the GIL up by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    yield
    sys.setswitchinterval(before)


class Counter:
    """Another thread that counts whenever it gets the GIL, and gives it up at once."""

    def __init__(self):
        self.count = 0
        self._stop = False
        self._task = Task(self._run)
        while self.count == 0:
            time.sleep(0.001)

    def _run(self):
        while not self._stop:
            self.count += 1
            time.sleep(0)

    def during(self, function):
        """How often the other thread ran during the call."""
        before = self.count
        function()
        return self.count - before

    def stop(self):
        self._stop = True
        self._task.result()


@pytest.fixture
def counter(gil_is_never_taken_away, manual_gc):
    counter = Counter()
    yield counter
    counter.stop()


def test_path_1_the_fast_path_keeps_the_gil(strategy, counter):
    alloc = small(strategy, blocks=8)
    kept = []

    def fast():
        for _ in range(2000):
            kept.append(alloc.allocate(BLOCK))
            kept.append(alloc.try_allocate(BLOCK))
            kept.pop().free()
            kept.pop()

    assert counter.during(fast) == 0
    assert pressure(alloc, "events") == 0


def test_path_1_looking_at_statistics_keeps_the_gil(strategy, counter):
    alloc = small(strategy)

    def look():
        for _ in range(200):
            alloc.memory_stats()
            alloc.pressure_stats()
            alloc.memory_info()

    assert counter.during(look) == 0


def test_path_1_other_threads_run_while_the_device_takes_its_time(strategy, counter):
    device = spyre_alloc.SimulatedDevice(4 * BLOCK, latency=0.1)
    options = dict(acquisition="on-demand", fallback_sizes=[BLOCK])
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, **options)
    assert counter.during(lambda: alloc.allocate(BLOCK)) > 10
    assert device.calls == 1


def test_path_1_other_threads_run_while_an_allocator_is_made(strategy, counter):
    device = spyre_alloc.SimulatedDevice(4 * BLOCK, latency=0.1)
    make = spyre_alloc.SpyreAllocator
    assert counter.during(lambda: make(strategy, device=device, regions=1)) > 10


def test_path_1_other_threads_run_while_a_request_waits(strategy, counter):
    alloc = small(strategy, max_wait=0.2, gc=False)
    kept = fill(alloc)
    inside, leave = threading.Event(), threading.Event()

    def callback(event):
        inside.set()
        reached(leave)

    alloc.register_memory_pressure_callback(callback)
    busy = Task(failure, alloc.allocate, BLOCK, None, None, None, None, 0.0)
    reached(inside)
    assert counter.during(lambda: failure(alloc.allocate, BLOCK)) > 10
    assert pressure(alloc, "waits") == 1
    leave.set()
    busy.result()
    assert len(kept) == 4


def test_path_2_a_callback_has_the_gil(strategy, counter):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    counts = []

    def callback(event):
        counts.append(counter.during(lambda: sum(range(200_000))))

    alloc.register_memory_pressure_callback(callback)
    failure(alloc.allocate, BLOCK)
    assert counts == [0]
    assert len(kept) == 4


@pytest.mark.parametrize("native", [False, True], ids=["python-thread", "native-thread"])
def test_path_2_a_callback_holds_no_lock_of_the_allocator(strategy, native):
    alloc = small(strategy, max_wait=DEADLINE, gc=False)
    kept = fill(alloc)
    seen = []

    def callback(event):
        # Each of these takes the allocator's mutex, on a thread that is not inside a callback.
        other = Task(lambda: (alloc.check_invariants(), kept.pop().free(), alloc.memory_info()))
        seen.append(other.result()[2][1])

    alloc.register_memory_pressure_callback(callback)
    if native:
        worker = spyre_alloc.NativeWorker(alloc, BLOCK, iterations=1)
        worker.join()
        assert worker.allocations == 1
    else:
        alloc.allocate(BLOCK)
    assert seen == [4 * BLOCK]


def test_path_3_a_native_thread_meets_pressure_while_python_threads_run(strategy, manual_gc):
    # case 1, case 5
    alloc = small(strategy, blocks=12, max_wait=DEADLINE)
    worker = spyre_alloc.NativeWorker(alloc, BLOCK, live=2)
    failures = workloads.run(alloc, 200 if SLOWNESS == 1 else 50, garbage=4)
    eventually(lambda: worker.allocations > 100, "the worker is served")
    worker.stop()
    assert (failures, worker.out_of_memory) == (0, 0)
    assert pressure(alloc, "collections") > 0
    alloc.check_invariants()


def test_path_3_a_native_thread_collects_python_garbage_by_itself(strategy, manual_gc):
    alloc = small(strategy)
    litter(alloc, 4)
    worker = spyre_alloc.NativeWorker(alloc, BLOCK, live=4, iterations=4)
    worker.join()
    assert (worker.allocations, worker.out_of_memory) == (4, 0)
    assert pressure(alloc, "events", "collections", "bytes_reclaimed") == (1, 1, 4 * BLOCK)
    assert len(worker.latencies()) == 4
    assert min(worker.latencies()) > 0


def test_path_3_its_blocks_are_freed_without_python(strategy):  # case 4
    alloc = small(strategy, blocks=8)
    worker = spyre_alloc.NativeWorker(alloc, BLOCK, live=4, iterations=50)
    worker.join()
    eventually(lambda: alloc.memory_info()[0] == 8 * BLOCK, "all is free")
    assert alloc.memory_stats()["allocation.all.freed"] == 50


def test_finalizers_free_while_native_threads_are_inside_the_allocator(strategy, manual_gc):
    # cases 8, 15, 17, 20
    alloc = small(strategy, blocks=64, max_wait=DEADLINE)
    workers = [spyre_alloc.NativeWorker(alloc, 1024, live=8) for _ in range(2)]
    for _ in range(100):
        thing = Thing(buffers=[alloc.allocate(4096) for _ in range(20)])
        thing.me = thing
        del thing
        manual_gc.collect()
    for worker in workers:
        worker.stop()
    alloc.check_invariants()
    eventually(lambda: alloc.memory_info()[0] == 64 * BLOCK, "all is free")
    assert all(worker.out_of_memory == 0 for worker in workers)
