# SPDX-License-Identifier: Apache-2.0
"""Memory that the collector cannot free does not turn into a storm of collections."""

import time

import pytest
import spyre_alloc
from support import BLOCK, SLOWNESS, eventually, failure, fill, litter, pressure, small

GcOptions = spyre_alloc.GcOptions


@pytest.fixture
def live_data(manual_gc):
    """Enough of it that a collection takes milliseconds."""
    return [[] for _ in range(200_000)]


def fail_for(alloc, seconds, nbytes=BLOCK):
    """Fails for so long; the time, and the longest single failure, in seconds."""
    began = now = time.monotonic()
    longest = 0.0
    while now - began < seconds:
        failure(alloc.allocate, nbytes)
        before, now = now, time.monotonic()
        longest = max(longest, now - before)
    return now - began, longest


def test_fruitless_collections_keep_to_the_budget(strategy, live_data):  # case 37
    alloc = small(strategy, max_wait=0.0, gc=GcOptions(budget=0.1, burst=0.05))
    kept = fill(alloc)
    elapsed, longest = fail_for(alloc, 1.0)
    stats = alloc.pressure_stats()
    assert stats["collections"] == stats["collections_fruitless"] > 0
    assert stats["collections_skipped"] > stats["collections"]
    assert stats["collection_ns"] / 1e9 <= 0.05 + 0.1 * elapsed + longest
    # The bucket refills while nobody asks.
    eventually(lambda: "budget" in str(failure(alloc.allocate, BLOCK)), "the error says why")
    assert len(kept) == 4 and len(live_data) == 200_000


def test_an_empty_budget_never_refills(strategy, live_data):
    alloc = small(strategy, max_wait=0.0, gc=GcOptions(budget=0.0, burst=1e-9))
    kept = fill(alloc)
    for _ in range(5):
        failure(alloc.allocate, BLOCK)
    assert pressure(alloc, "collections", "collections_skipped") == (1, 4)
    kept.clear()
    assert len(live_data) == 200_000


def test_without_a_burst_nothing_is_ever_collected(strategy, manual_gc):
    alloc = small(strategy, max_wait=0.0, gc=GcOptions(burst=0.0))
    litter(alloc, 4)
    failure(alloc.allocate, BLOCK)
    assert pressure(alloc, "collections", "collections_skipped") == (0, 1)


def test_fruitful_collections_cost_nothing(strategy, live_data):
    alloc = small(strategy, gc=GcOptions(budget=0.0, burst=1e-9))
    for _ in range(25):
        litter(alloc, 4)
    assert pressure(alloc, "collections") == 24
    assert pressure(alloc, "collections_skipped", "out_of_memory") == (0, 0)
    assert len(live_data) == 200_000


def test_others_frees_do_not_make_a_collection_fruitful(strategy, live_data):
    alloc = small(strategy, max_wait=0.0, gc=GcOptions(budget=0.1, burst=0.05))
    kept = [alloc.allocate(2 * BLOCK)]
    bystander = spyre_alloc.NativeWorker(alloc, 1024, live=4)
    elapsed, longest = fail_for(alloc, 1.0, 4 * BLOCK)
    stats = alloc.pressure_stats()
    bystander.stop()
    assert bystander.allocations > 0
    assert stats["collection_ns"] / 1e9 <= 0.05 + 0.1 * elapsed + longest
    assert len(kept) == 1 and len(live_data) == 200_000


def test_a_fruitless_collection_is_not_repeated_within_the_interval(strategy, manual_gc):
    alloc = small(strategy, max_wait=0.0, gc=GcOptions(min_interval=3600.0))
    kept = fill(alloc)
    for _ in range(5):
        failure(alloc.allocate, BLOCK)
    assert pressure(alloc, "collections", "collections_skipped") == (1, 4)
    assert len(kept) == 4


def test_a_fruitful_collection_may_be_repeated_within_the_interval(strategy, manual_gc):
    alloc = small(strategy, gc=GcOptions(min_interval=3600.0))
    for _ in range(5):
        litter(alloc, 4)
    assert pressure(alloc, "collections", "collections_skipped") == (4, 0)


def test_the_interval_ends(strategy, manual_gc):
    alloc = small(strategy, max_wait=0.0, gc=GcOptions(min_interval=0.05))
    kept = fill(alloc)
    began = time.monotonic()
    while pressure(alloc, "collections") < 3:
        failure(alloc.allocate, BLOCK)
    assert 0.1 <= time.monotonic() - began < 5.0 * SLOWNESS
    assert len(kept) == 4


def test_time_in_collections_is_reported(strategy, live_data):
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)
    began = time.perf_counter_ns()
    failure(alloc.allocate, BLOCK)
    took = time.perf_counter_ns() - began
    assert 100_000 < pressure(alloc, "collection_ns") <= took
    assert len(kept) == 4 and len(live_data) == 200_000


def test_each_allocator_has_a_budget_of_its_own(strategy, manual_gc):
    options = GcOptions(min_interval=3600.0)
    for _ in range(2):
        alloc = small(strategy, max_wait=0.0, gc=options)
        kept = fill(alloc)
        failure(alloc.allocate, BLOCK)
        assert pressure(alloc, "collections", "collections_skipped") == (1, 0)
        assert len(kept) == 4


def test_options_show_what_they_were_given():
    options = GcOptions(True, True, 2.0, 0.5, 0.25, 3)
    assert options.young_first is True
    assert options.respect_disable is True
    assert options.patience == 2.0
    assert options.min_interval == 0.5
    assert options.budget == 0.25
    assert options.burst == 3.0


def test_the_defaults_of_the_options():
    options = GcOptions()
    assert not options.young_first and not options.respect_disable
    assert (options.patience, options.min_interval) == (1.0, 0.0)
    assert (options.budget, options.burst) == (0.5, 1.0)


def test_options_cannot_be_changed():
    with pytest.raises(AttributeError):
        GcOptions().budget = 0.1
