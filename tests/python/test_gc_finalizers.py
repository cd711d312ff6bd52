# SPDX-License-Identifier: Apache-2.0
"""An allocation inside a garbage collection is served from what is free, or fails at once."""

import gc
import time
import weakref

import pytest
import spyre_alloc
from support import BLOCK, DEADLINE, Task, Thing, failure, fill, pressure, small

pytestmark = pytest.mark.usefixtures("manual_gc")


class Finalized:
    """Calls a function when it is collected, which it is only as garbage in a cycle."""

    def __init__(self, function):
        self.me = self
        self.function = function

    def __del__(self):
        self.function()


def collect_with(function):
    """Runs the function inside a collection; what it returns or raises."""
    results = []

    def keep():
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 - a finalizer's errors go nowhere
            results.append(error)

    Finalized(keep)
    gc.collect()
    return results[0]


def test_it_fails_at_once_and_says_why(strategy):  # case 19
    alloc = small(strategy, max_wait=DEADLINE)
    kept = fill(alloc)
    began = time.monotonic()
    error = collect_with(lambda: alloc.allocate(BLOCK))
    assert time.monotonic() - began < DEADLINE / 3
    assert isinstance(error, spyre_alloc.OutOfMemoryError)
    assert error.reason == "inside-finalizer"
    assert "finalizer" in str(error)
    assert (error.reclaims, error.waited_ms) == (0, 0.0)
    assert pressure(alloc, "reclaims", "waits", "collections") == (0, 0, 0)
    assert alloc.pressure_stats()["failures"]["inside-finalizer"] == 1
    assert len(kept) == 4


def test_it_is_served_where_memory_is_free(strategy):
    alloc = small(strategy)
    buffer = collect_with(lambda: alloc.allocate(BLOCK))
    assert buffer.nbytes == BLOCK
    assert pressure(alloc, "reclaims", "out_of_memory") == (0, 0)


def test_it_may_free(strategy):
    alloc = small(strategy)
    kept = fill(alloc)
    collect_with(kept.clear)
    alloc.allocate(4 * BLOCK)
    assert pressure(alloc, "events") == 0


def test_a_weak_references_callback_counts_as_a_finalizer(strategy):
    alloc = small(strategy, max_wait=DEADLINE)
    kept = fill(alloc)
    reasons = []
    thing = Thing()
    thing.me = thing
    watcher = weakref.ref(thing, lambda _: reasons.append(failure(alloc.allocate, BLOCK).reason))
    del thing
    gc.collect()
    assert reasons == ["inside-finalizer"]
    assert watcher() is None and len(kept) == 4


def test_an_automatic_collection_counts_as_well(strategy):
    alloc = small(strategy, max_wait=DEADLINE)
    kept = fill(alloc)
    reasons = []
    Finalized(lambda: reasons.append(failure(alloc.allocate, BLOCK).reason))
    gc.enable()
    hoard = []
    while not reasons:
        hoard.append([])
        assert len(hoard) < 1_000_000
    gc.disable()
    assert reasons == ["inside-finalizer"]
    assert len(kept) == 4


def test_inside_the_collection_that_its_own_request_started_it_is_served_from_the_rest(strategy):
    alloc = small(strategy, max_wait=DEADLINE)
    rest = fill(alloc)
    rest.pop()
    pieces = []
    Finalized(lambda: pieces.append(alloc.allocate(BLOCK)))
    thing = Thing(buffers=rest)
    thing.me = thing
    del thing, rest
    buffer = alloc.allocate(2 * BLOCK)
    assert buffer.nbytes == 2 * BLOCK
    assert [piece.nbytes for piece in pieces] == [BLOCK]
    assert pressure(alloc, "events", "reclaims", "out_of_memory") == (1, 1, 0)


def test_inside_the_collection_that_its_own_request_started_it_fails_at_once(strategy):
    alloc = small(strategy, max_wait=0.5)
    reasons = []
    Finalized(lambda: reasons.append(failure(alloc.allocate, BLOCK).reason))
    thing = Thing(buffers=fill(alloc))
    thing.me = thing
    del thing
    alloc.allocate(BLOCK)
    assert len(reasons) == 1
    assert reasons[0] in ("inside-finalizer", "inside-callback")
    assert pressure(alloc, "reclaims", "collections", "waits") == (1, 1, 0)


def test_a_finalizer_of_one_allocator_may_use_another(strategy):
    first = small(strategy, max_wait=DEADLINE)
    second = small(strategy, max_wait=DEADLINE)
    kept = fill(second)
    reasons = []
    Finalized(lambda: reasons.append(failure(second.allocate, BLOCK).reason))
    thing = Thing(buffers=fill(first))
    thing.me = thing
    del thing
    first.allocate(BLOCK)
    assert reasons == ["inside-finalizer"]
    assert pressure(second, "reclaims", "waits") == (0, 0)
    assert len(kept) == 4


def test_a_finalizer_without_a_collection_is_an_ordinary_place(strategy):
    alloc = small(strategy)
    thing = Thing(buffers=fill(alloc))
    thing.me = thing
    served = []

    class Dropped:
        def __del__(self):
            served.append(alloc.allocate(BLOCK))

    dropped = Dropped()
    del thing
    del dropped
    assert [buffer.nbytes for buffer in served] == [BLOCK]
    assert pressure(alloc, "collections", "out_of_memory") == (1, 0)


def test_a_listener_of_gc_callbacks_is_inside_the_collection(strategy):
    alloc = small(strategy, max_wait=DEADLINE)
    kept = fill(alloc)
    reasons = []

    def listener(phase, info):
        if phase == "start":
            reasons.append(failure(alloc.allocate, BLOCK).reason)

    gc.callbacks.append(listener)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(listener)
    assert reasons == ["inside-finalizer"]
    assert len(kept) == 4


@pytest.mark.parametrize("place", [0, 1000], ids=["before-ours", "after-ours"])
@pytest.mark.parametrize("phase", ["start", "stop"])
def test_no_listener_of_gc_callbacks_waits_for_longer_than_the_patience(strategy, phase, place):
    options = spyre_alloc.GcOptions(patience=0.1)
    alloc = small(strategy, max_wait=0.1, gc=options)
    kept = fill(alloc)
    took = []

    def listener(now, info):
        if now == phase:
            began = time.monotonic()
            failure(alloc.allocate, BLOCK)
            took.append(time.monotonic() - began)

    gc.callbacks.insert(place, listener)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(listener)
    assert len(took) == 1 and took[0] < DEADLINE / 3
    assert len(kept) == 4


def test_gc_collect_inside_a_finalizer_does_no_harm(strategy):  # case 28
    alloc = small(strategy)
    Finalized(gc.collect)
    thing = Thing(buffers=fill(alloc))
    thing.me = thing
    del thing
    alloc.allocate(BLOCK)
    assert pressure(alloc, "collections", "out_of_memory") == (1, 0)


def test_joining_a_thread_that_waits_for_memory_takes_its_max_wait_at_most(strategy):
    alloc = small(strategy, max_wait=0.2, gc=spyre_alloc.GcOptions(patience=0.2))
    kept = fill(alloc)
    other = collect_with(lambda: Task(alloc.allocate, BLOCK).wait())
    assert isinstance(other.error, spyre_alloc.OutOfMemoryError)
    kept.clear()
    assert alloc.allocate(BLOCK).nbytes == BLOCK
