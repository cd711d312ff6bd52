# SPDX-License-Identifier: Apache-2.0
"""Which pressure callbacks run, when, where, and what they are told."""

import gc
import sys
import threading

import pytest
import spyre_alloc
from support import BLOCK, Task, Thing, failure, fill, litter, pressure, small

pytestmark = pytest.mark.usefixtures("manual_gc")


def test_a_callback_that_frees_serves_the_request(strategy):  # case 66
    alloc = small(strategy, gc=False)
    kept = fill(alloc)
    alloc.register_memory_pressure_callback(lambda event: kept.clear())
    assert alloc.allocate(BLOCK).nbytes == BLOCK
    names = ("events", "reclaims", "callbacks", "bytes_reclaimed", "out_of_memory")
    assert pressure(alloc, *names) == (1, 1, 1, 4 * BLOCK, 0)


def test_no_callback_runs_while_there_is_room(strategy):  # case 39
    alloc = small(strategy)
    calls = []
    alloc.register_memory_pressure_callback(calls.append)
    for _ in range(8):
        alloc.allocate(BLOCK)
    assert not calls
    assert pressure(alloc, "events", "callbacks") == (0, 0)


def test_they_run_in_order_of_priority_and_then_of_registration(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    order = []
    for priority, name in [(5, "c"), (-5, "a"), (5, "d"), (0, "b"), (2**31 - 1, "e")]:
        alloc.register_memory_pressure_callback(lambda event, name=name: order.append(name), priority)
    failure(alloc.allocate, BLOCK)
    assert order == ["a", "b", "c", "d", "e"]
    assert pressure(alloc, "callbacks") == 5
    assert len(kept) == 4


def test_garbage_is_collected_after_callbacks_of_lower_priority(strategy):
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)
    order = []

    def listener(phase, info):
        if phase == "start":
            order.append("gc")

    alloc.register_memory_pressure_callback(lambda event: order.append("late"), 1003)
    alloc.register_memory_pressure_callback(lambda event: order.append("early"), 999)
    gc.callbacks.append(listener)
    try:
        failure(alloc.allocate, BLOCK)
    finally:
        gc.callbacks.remove(listener)
    assert order == ["early", "gc", "late"]
    assert len(kept) == 4


def test_the_run_ends_with_the_callback_that_freed_enough(strategy):
    alloc = small(strategy)
    kept = fill(alloc)
    calls = []
    alloc.register_memory_pressure_callback(lambda event: (calls.append(1), kept.pop()), 1)
    alloc.register_memory_pressure_callback(lambda event: (calls.append(2), kept.pop()), 2)
    alloc.register_memory_pressure_callback(lambda event: calls.append(3), 3)
    alloc.allocate(2 * BLOCK)
    assert calls == [1, 2]
    assert pressure(alloc, "collections") == 0


def test_an_event_tells_what_is_wanted_and_what_there_is(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    del kept[0], kept[1]
    events = []
    alloc.register_memory_pressure_callback(events.append)
    failure(alloc.allocate, 2 * BLOCK, domain=0)
    (event,) = events
    assert event.requested == 2 * BLOCK
    assert event.free == 2 * BLOCK
    assert event.largest_free == BLOCK
    assert event.total == 4 * BLOCK
    assert event.domain == 0
    assert event.memory_type == "tensor"
    assert event.attempt >= 1
    assert event.generation == 1


def test_an_event_names_no_domain_where_the_request_named_none(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    events = []
    alloc.register_memory_pressure_callback(events.append)
    failure(alloc.allocate, 2 * BLOCK, memory_type="program")
    assert events[0].domain is None
    assert events[0].memory_type == "program"
    assert len(kept) == 4


def test_attempts_are_counted_up_and_reset_with_each_request(strategy):  # case 96
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    attempts = []
    for priority in range(3):
        alloc.register_memory_pressure_callback(lambda event: attempts.append(event.attempt), priority)
    failure(alloc.allocate, BLOCK)
    first = attempts[:]
    assert first == sorted(set(first)) and first[0] >= 1
    failure(alloc.allocate, BLOCK)
    assert attempts[3:] == first
    assert len(kept) == 4


def test_an_event_outlives_its_request(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    events = []
    alloc.register_memory_pressure_callback(events.append)
    failure(alloc.allocate, BLOCK)
    del alloc, kept
    assert events[0].requested == BLOCK


def test_it_runs_on_the_requesting_thread(strategy):
    alloc = small(strategy, gc=False)
    kept = fill(alloc)
    threads = []

    def callback(event):
        threads.append(threading.get_ident())
        kept.clear()

    alloc.register_memory_pressure_callback(callback)
    asking = Task(alloc.allocate, BLOCK)
    asking.result()
    assert threads == [asking.ident]


def test_it_runs_on_a_native_thread_too(strategy):
    alloc = small(strategy, gc=False)
    kept = fill(alloc)
    threads = []

    def callback(event):
        threads.append(threading.current_thread())
        kept.clear()

    alloc.register_memory_pressure_callback(callback)
    worker = spyre_alloc.NativeWorker(alloc, BLOCK, iterations=1)
    worker.join()
    assert (worker.allocations, worker.out_of_memory) == (1, 0)
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


def test_every_way_to_allocate_runs_them(strategy):  # case 78
    device = spyre_alloc.SimulatedDevice(4 * BLOCK, domains=2)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, regions=1, gc=False)
    kept = []
    calls = []
    alloc.register_memory_pressure_callback(lambda event: (calls.append(1), kept.clear()))
    ways = [
        dict(),
        dict(domain=1),
        dict(domain=[1, 0]),
        dict(near=1),
        dict(policy="interleave"),
        dict(policy="scatter"),
        dict(memory_type="program"),
        dict(max_wait=0.0),
    ]
    for count, way in enumerate(ways, 1):
        kept += fill(alloc)
        alloc.allocate(BLOCK, **way)
        assert len(calls) == count, way


def test_try_allocate_runs_none(strategy):
    alloc = small(strategy)
    litter(alloc, 4)
    calls = []
    alloc.register_memory_pressure_callback(calls.append)
    assert alloc.try_allocate(BLOCK) is None
    assert not calls
    assert pressure(alloc, "reclaims", "collections", "waits") == (0, 0, 0)


def test_any_callable_will_do(strategy):
    class Holder:
        def __init__(self):
            self.calls = 0

        def method(self, event):
            self.calls += 1

        def __call__(self, event):
            self.calls += 1

    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    holder = Holder()
    alloc.register_memory_pressure_callback(holder)
    alloc.register_memory_pressure_callback(holder.method)
    failure(alloc.allocate, BLOCK)
    assert holder.calls == 2
    assert len(kept) == 4


def test_its_result_is_ignored_and_dropped(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    result = Thing()
    count = sys.getrefcount(result)
    alloc.register_memory_pressure_callback(lambda event: result)
    for _ in range(3):
        failure(alloc.allocate, BLOCK)
    assert sys.getrefcount(result) == count
    assert len(kept) == 4


def test_a_failed_request_leaks_no_reference_to_the_callable(strategy):  # case 41
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)

    def callback(event):
        raise ValueError

    alloc.register_memory_pressure_callback(callback)
    failure(alloc.allocate, BLOCK)
    count = sys.getrefcount(callback)
    for _ in range(100):
        failure(alloc.allocate, BLOCK)
    assert sys.getrefcount(callback) == count
    assert len(kept) == 4
