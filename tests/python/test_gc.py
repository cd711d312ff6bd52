# SPDX-License-Identifier: Apache-2.0
"""Under pressure Python's cyclic garbage is collected, and the counters tell of it."""

import gc
import sys
import threading
import weakref

import pytest
import spyre_alloc
from support import BLOCK, Task, Thing, failure, fill, litter, pressure, run_python, small

pytestmark = pytest.mark.usefixtures("manual_gc")


@pytest.fixture
def generations():
    """The generations of the collections that start, in order."""
    started = []

    def listener(phase, info):
        if phase == "start":
            started.append(info["generation"])

    gc.callbacks.append(listener)
    yield started
    gc.callbacks.remove(listener)


def test_cyclic_garbage_is_freed_under_pressure_and_the_counters_show_it(strategy):
    alloc = small(strategy)
    litter(alloc, 4)
    assert pressure(alloc, "events") == 0
    buffer = alloc.allocate(BLOCK)
    assert buffer.nbytes == BLOCK
    stats = alloc.pressure_stats()
    assert stats["events"] == stats["reclaims"] == stats["collections"] == 1
    assert stats["bytes_reclaimed"] == 4 * BLOCK
    assert stats["collections_skipped"] == stats["collections_fruitless"] == 0
    assert stats["collection_ns"] > 0
    assert stats["out_of_memory"] == 0


def test_nothing_is_collected_while_there_is_room(strategy):
    alloc = small(strategy, blocks=8)
    litter(alloc, 4)
    alloc.allocate(4 * BLOCK)
    assert pressure(alloc, "events", "collections") == (0, 0)


def test_where_nothing_can_be_freed_one_collection_is_enough(strategy):
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)
    error = failure(alloc.allocate, BLOCK)
    assert error.reason == "exhausted"
    assert error.reclaims == 1
    names = ("events", "reclaims", "collections", "collections_fruitless", "out_of_memory")
    assert pressure(alloc, *names) == (1, 1, 1, 1, 1)
    assert len(kept) == 4


def test_gc_disable_does_not_matter(strategy):
    assert not gc.isenabled()
    alloc = small(strategy)
    litter(alloc, 4)
    alloc.allocate(BLOCK)
    assert pressure(alloc, "collections") == 1
    assert not gc.isenabled()


def test_gc_disable_is_respected_by_option(strategy):
    options = spyre_alloc.GcOptions(respect_disable=True)
    alloc = small(strategy, max_wait=0.0, gc=options)
    litter(alloc, 4)
    error = failure(alloc.allocate, BLOCK)
    assert "disabled" in str(error)
    assert pressure(alloc, "collections", "collections_skipped") == (0, 1)
    gc.enable()
    alloc.allocate(BLOCK)
    gc.disable()
    assert pressure(alloc, "collections") == 1


def test_without_gc_nothing_is_collected(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    litter(alloc, 4)
    assert failure(alloc.allocate, BLOCK).reason == "exhausted"
    assert pressure(alloc, "events", "collections", "collections_skipped") == (1, 0, 0)
    gc.collect()
    alloc.allocate(BLOCK)


def test_only_the_full_collection_runs_by_default(strategy, generations):
    alloc = small(strategy)
    litter(alloc, 4)
    alloc.allocate(BLOCK)
    assert generations == [2]


def test_young_garbage_needs_no_full_collection_with_young_first(strategy, generations):
    alloc = small(strategy, gc=spyre_alloc.GcOptions(young_first=True))
    litter(alloc, 4)
    alloc.allocate(BLOCK)
    assert generations == [0]
    assert pressure(alloc, "collections", "reclaims") == (1, 1)


def test_old_garbage_is_found_at_last_with_young_first(strategy, generations):
    alloc = small(strategy, gc=spyre_alloc.GcOptions(young_first=True))
    thing = Thing(buffers=fill(alloc))
    thing.me = thing
    gc.collect()
    del thing
    generations.clear()
    alloc.allocate(BLOCK)
    assert generations == [0, 1, 2]
    assert pressure(alloc, "collections", "collections_fruitless", "reclaims") == (3, 2, 1)


def test_frozen_garbage_is_out_of_reach_and_the_error_says_so(strategy):  # case 34
    alloc = small(strategy, max_wait=0.0)
    litter(alloc, 4)
    gc.freeze()
    error = failure(alloc.allocate, BLOCK)
    assert "gc.freeze()" in str(error)
    gc.unfreeze()
    alloc.allocate(BLOCK)
    assert pressure(alloc, "collections") == 2


def test_emptying_gc_callbacks_costs_nothing(strategy):
    before = list(gc.callbacks)
    gc.callbacks.clear()
    try:
        alloc = small(strategy)
        litter(alloc, 4)
        alloc.allocate(BLOCK)
        assert pressure(alloc, "collections", "collections_skipped") == (1, 0)
    finally:
        gc.callbacks[:] = before


def test_the_collection_runs_on_the_thread_that_asked(strategy):
    alloc = small(strategy)
    seen = []

    def listener(phase, info):
        seen.append(threading.get_ident())

    litter(alloc, 4)
    gc.callbacks.append(listener)
    try:
        asking = Task(alloc.allocate, BLOCK)
        asking.result()
    finally:
        gc.callbacks.remove(listener)
    assert set(seen) == {asking.ident}


def test_an_error_in_a_finalizer_is_not_the_requests(strategy):
    class Fails:
        def __del__(self):
            raise ValueError("in a finalizer")

    alloc = small(strategy)
    thing = Thing(buffers=fill(alloc), fails=Fails())
    thing.me = thing
    del thing
    reported = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda args: reported.append(args.exc_type)
    try:
        alloc.allocate(BLOCK)
    finally:
        sys.unraisablehook = hook
    assert reported == [ValueError]
    assert pressure(alloc, "collections", "callback_errors") == (1, 0)


def test_a_resurrected_buffer_stays_allocated(strategy):
    risen = []

    class Lazarus:
        def __del__(self):
            risen.append(self)

    alloc = small(strategy, max_wait=0.0)
    thing = Lazarus()
    thing.me, thing.buffers = thing, fill(alloc)
    del thing
    error = failure(alloc.allocate, BLOCK)
    assert error.reason == "exhausted"
    assert [buffer.freed for buffer in risen[0].buffers] == [False] * 4
    alloc.check_invariants()


def test_a_weak_reference_dies_before_the_memory_is_used_again(strategy):
    alloc = small(strategy, blocks=1)
    thing = Thing(buffer=alloc.allocate(BLOCK))
    thing.me = thing
    seen = []
    address = thing.buffer.address
    watcher = weakref.ref(thing.buffer, lambda _: seen.append("dead"))
    del thing
    assert alloc.allocate(BLOCK).address == address
    assert seen == ["dead"] and watcher() is None


def test_it_works_after_the_gc_module_was_taken_apart(strategy):  # case 52
    program = """
import gc, sys
from support import *
alloc = small(sys.argv[1])
litter(alloc, 4)
for name in ("collect", "isenabled", "get_freeze_count"):
    setattr(gc, name, None)
sys.modules["gc"] = None
alloc.allocate(BLOCK)
print(pressure(alloc, "collections"))
"""
    done = run_python(program, strategy)
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr
