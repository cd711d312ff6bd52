# SPDX-License-Identifier: Apache-2.0
"""A pressure callback may allocate, free, look around, and end lives."""

import threading
import time

import pytest
import spyre_alloc
from support import (
    BLOCK,
    DEADLINE,
    Task,
    eventually,
    failure,
    fill,
    pressure,
    reached,
    small,
    used_bytes,
)

pytestmark = pytest.mark.usefixtures("manual_gc")


def test_allocating_inside_is_served_from_what_is_free(strategy):  # case 24
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    kept.pop()
    inside = []
    alloc.register_memory_pressure_callback(lambda event: inside.append(alloc.allocate(BLOCK)))
    failure(alloc.allocate, 2 * BLOCK)
    assert [buffer.nbytes for buffer in inside] == [BLOCK]
    assert pressure(alloc, "reclaims", "callback_errors") == (1, 0)


def test_allocating_inside_fails_at_once_where_nothing_is_free(strategy):
    alloc = small(strategy, max_wait=DEADLINE)
    kept = fill(alloc)
    errors = []

    def callback(event):
        began = time.monotonic()
        errors.append((failure(alloc.allocate, BLOCK), time.monotonic() - began))
        kept.clear()

    alloc.register_memory_pressure_callback(callback)
    alloc.allocate(BLOCK)
    ((error, took),) = errors
    assert error.reason == "inside-callback"
    assert took < DEADLINE / 3
    assert pressure(alloc, "reclaims", "callbacks", "waits") == (1, 1, 0)


def test_what_a_callback_takes_is_not_the_requests(strategy):  # case 64
    alloc = small(strategy, gc=False)
    kept = fill(alloc)
    bounce = []

    def callback(event):
        kept.pop()
        kept.pop()
        bounce.append(alloc.allocate(BLOCK))

    alloc.register_memory_pressure_callback(callback)
    buffer = alloc.allocate(BLOCK)
    assert buffer.address != bounce[0].address
    assert used_bytes(alloc) == 4 * BLOCK


def test_looking_at_the_allocator_inside_is_allowed(strategy):
    alloc = small(strategy, gc=False)
    kept = fill(alloc)
    seen = []

    def callback(event):
        seen.append(alloc.memory_info())
        seen.append(alloc.memory_stats()["allocation.all.current"])
        seen.append(alloc.pressure_stats()["events"])
        alloc.check_invariants()
        alloc.reset_peak_memory_stats()
        seen.append(alloc.try_allocate(BLOCK))
        repr(alloc)
        kept.clear()

    alloc.register_memory_pressure_callback(callback)
    alloc.allocate(BLOCK)
    assert seen == [(0, 4 * BLOCK), 4, 1, None]


def test_a_callback_may_empty_the_cache(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    given_back = []

    def callback(event):
        while kept:
            kept.pop().free()
        given_back.append(alloc.empty_cache())

    alloc.register_memory_pressure_callback(callback)
    assert alloc.allocate(BLOCK).nbytes == BLOCK
    assert len(given_back) == 1


def test_small_regions_that_a_callback_frees_make_room_for_a_larger_one(strategy):  # case 84
    device = spyre_alloc.SimulatedDevice(4 * BLOCK)
    options = dict(acquisition="on-demand", fallback_sizes=[BLOCK], regions=8, max_wait=0.0)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, gc=False, **options)
    kept = fill(alloc)
    assert len(kept) == 4
    alloc.register_memory_pressure_callback(lambda event: kept.clear())
    assert alloc.allocate(3 * BLOCK).nbytes == 3 * BLOCK
    alloc.check_invariants()


def test_a_native_threads_callback_may_drop_the_last_reference_to_the_allocator(strategy):
    device = spyre_alloc.SimulatedDevice(4 * BLOCK)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, regions=1, gc=False, max_wait=0.0)
    kept = fill(alloc)
    box = [alloc]
    called = threading.Event()

    def callback(event):
        box.clear()
        kept.clear()
        called.set()

    alloc.register_memory_pressure_callback(callback)
    del alloc
    worker = spyre_alloc.NativeWorker(box[0], BLOCK, iterations=3)
    reached(called)
    worker.join()
    assert worker.allocations == 3
    eventually(lambda: device.bytes_in_use == 0, "the regions go back")


def test_a_callback_may_drop_the_worker_that_runs_it(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    box = []
    ready, called = threading.Event(), threading.Event()

    def callback(event):
        reached(ready)
        box.clear()
        kept.clear()
        called.set()

    alloc.register_memory_pressure_callback(callback)
    box.append(spyre_alloc.NativeWorker(alloc, BLOCK, iterations=3))
    ready.set()
    reached(called)
    eventually(lambda: used_bytes(alloc) == 0, "the worker ends")


def test_joining_a_thread_that_waits_for_memory_takes_its_max_wait_at_most(strategy):
    alloc = small(strategy, max_wait=0.2, gc=False)
    kept = fill(alloc)
    joined = []

    def callback(event):
        if threading.current_thread() is not asking:
            return  # the joined thread reclaims, too, once it has its turn
        other = Task(alloc.allocate, BLOCK).wait()
        joined.append(type(other.error))
        kept.clear()

    asking = threading.current_thread()
    alloc.register_memory_pressure_callback(callback)
    alloc.allocate(BLOCK)
    assert joined == [spyre_alloc.OutOfMemoryError]
