# SPDX-License-Identifier: Apache-2.0
"""The counters: their names, exact numbers, and resets."""

import random

from support import BLOCK, failure, fill, litter, small

QUANTITIES = ("allocation", "allocated_bytes", "requested_bytes", "segment", "reserved_bytes")
PARTS = ("current", "peak", "allocated", "freed")
MEMORY = {f"{quantity}.all.{part}" for quantity in QUANTITIES for part in PARTS} | {
    "free_bytes",
    "largest_free_bytes",
    "capacity_bytes",
    "blocks",
    "metadata_bytes",
    "misuses",
    "num_alloc_retries",
    "num_ooms",
}
PRESSURE = {
    "events",
    "reclaims",
    "coalesced",
    "handoffs",
    "overtakes",
    "waits",
    "wait_ns",
    "timeouts",
    "callbacks",
    "callback_errors",
    "callbacks_skipped",
    "callback_ns",
    "bytes_reclaimed",
    "growths",
    "deferred_frees",
    "collections",
    "collections_skipped",
    "collections_fruitless",
    "collection_ns",
    "out_of_memory",
    "failures",
}
REASONS = {
    "exhausted",
    "fragmented",
    "larger-than-any-region",
    "timed-out",
    "inside-callback",
    "inside-finalizer",
    "must-not-wait",
    "callback-failed",
    "interpreter-finalizing",
    "closed",
}


def parts(alloc, quantity):
    stats = alloc.memory_stats()
    return tuple(stats[f"{quantity}.all.{part}"] for part in PARTS)


def test_all_names_are_there_and_all_values_are_numbers(strategy):
    alloc = small(strategy)
    memory, pressure = alloc.memory_stats(), alloc.pressure_stats()
    assert set(memory) == MEMORY
    assert set(pressure) == PRESSURE
    assert set(pressure["failures"]) == REASONS
    numbers = [*memory.values(), *pressure.pop("failures").values(), *pressure.values()]
    assert all(type(number) is int and number >= 0 for number in numbers)


def test_a_fresh_allocator(strategy):
    alloc = small(strategy)
    stats = alloc.memory_stats()
    for quantity in QUANTITIES[:3]:
        assert parts(alloc, quantity) == (0, 0, 0, 0)
    assert parts(alloc, "segment") == (1, 1, 1, 0)
    assert parts(alloc, "reserved_bytes") == (4 * BLOCK, 4 * BLOCK, 4 * BLOCK, 0)
    assert stats["free_bytes"] == stats["largest_free_bytes"] == stats["capacity_bytes"]
    assert stats["capacity_bytes"] == 4 * BLOCK
    assert stats["blocks"] == 1
    assert stats["metadata_bytes"] > 0
    assert alloc.memory_info() == (4 * BLOCK, 4 * BLOCK)


def test_exact_numbers_after_a_few_calls(strategy):
    alloc = small(strategy)
    kept = [alloc.allocate(size) for size in (1, 128, 129, 1000)]
    assert parts(alloc, "allocation") == (4, 4, 4, 0)
    assert parts(alloc, "requested_bytes") == (1258, 1258, 1258, 0)
    assert parts(alloc, "allocated_bytes") == (1536, 1536, 1536, 0)
    kept.pop(1).free()
    del kept[-1]
    assert parts(alloc, "allocation") == (2, 4, 4, 2)
    assert parts(alloc, "requested_bytes") == (130, 1258, 1258, 1128)
    assert parts(alloc, "allocated_bytes") == (384, 1536, 1536, 1152)
    stats = alloc.memory_stats()
    assert stats["free_bytes"] == alloc.memory_info()[0] == 4 * BLOCK - 384
    assert stats["largest_free_bytes"] == 4 * BLOCK - 512
    assert stats["blocks"] == 4
    assert (stats["num_alloc_retries"], stats["num_ooms"], stats["misuses"]) == (0, 0, 0)


def test_an_empty_buffer_counts_for_nothing(strategy):
    alloc = small(strategy)
    kept = alloc.allocate(0)
    assert parts(alloc, "allocation") == (0, 0, 0, 0)
    assert kept.nbytes == 0


def test_retries_and_failures_are_counted_as_frameworks_do(strategy, manual_gc):
    alloc = small(strategy, max_wait=0.0)
    litter(alloc, 4)
    alloc.allocate(BLOCK)
    kept = fill(alloc)
    failure(alloc.allocate, BLOCK)
    failure(alloc.allocate, 5 * BLOCK)
    stats, pressure = alloc.memory_stats(), alloc.pressure_stats()
    assert stats["num_alloc_retries"] == pressure["events"] == 2
    assert stats["num_ooms"] == pressure["out_of_memory"] == 2
    expected = dict.fromkeys(REASONS, 0) | {"exhausted": 1, "larger-than-any-region": 1}
    assert pressure["failures"] == expected
    assert len(kept) == 4


def test_try_allocate_is_no_event_and_no_failure(strategy):
    alloc = small(strategy)
    kept = fill(alloc)
    assert alloc.try_allocate(BLOCK) is None
    assert alloc.pressure_stats()["events"] == alloc.pressure_stats()["out_of_memory"] == 0
    assert len(kept) == 4


def test_every_quantity_of_time_and_work_under_pressure(strategy, manual_gc):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    alloc.register_memory_pressure_callback(lambda event: kept.pop())
    alloc.register_memory_pressure_callback(lambda event: sum(range(1000)), 1)
    alloc.allocate(BLOCK)
    failure(alloc.allocate, 3 * BLOCK)
    stats = alloc.pressure_stats()
    assert (stats["events"], stats["reclaims"], stats["callbacks"]) == (2, 2, 3)
    assert stats["bytes_reclaimed"] == 2 * BLOCK
    assert stats["callback_ns"] > 0
    assert (stats["waits"], stats["wait_ns"]) == (0, 0)
    assert (stats["coalesced"], stats["handoffs"], stats["callback_errors"]) == (0, 0, 0)


def test_resetting_the_peak_leaves_the_rest(strategy):
    alloc = small(strategy)
    kept = [alloc.allocate(BLOCK), alloc.allocate(BLOCK)]
    kept.pop()
    alloc.reset_peak_memory_stats()
    assert parts(alloc, "allocation") == (1, 1, 2, 1)
    assert parts(alloc, "allocated_bytes") == (BLOCK, BLOCK, 2 * BLOCK, BLOCK)
    kept.append(alloc.allocate(BLOCK))
    assert parts(alloc, "allocation")[1] == 2


def test_resetting_the_sums_leaves_what_is_and_its_peak(strategy, manual_gc):  # case 91
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)
    failure(alloc.allocate, BLOCK)
    kept.pop()
    collections = alloc.pressure_stats()["collections"]
    alloc.reset_accumulated_memory_stats()
    assert parts(alloc, "allocation") == (3, 4, 0, 0)
    kept.pop()
    assert parts(alloc, "allocation") == (2, 4, 0, 1)
    stats = alloc.pressure_stats()
    assert stats.pop("failures") == dict.fromkeys(REASONS, 0)
    assert {name for name, value in stats.items() if value} == {
        "collections",
        "collections_fruitless",
        "collection_ns",
    }
    assert stats["collections"] == collections == 1


def test_regions_are_counted_as_segments(strategy):
    alloc = small(strategy)
    assert alloc.empty_cache() == 4 * BLOCK
    assert parts(alloc, "segment") == (0, 1, 1, 1)
    assert parts(alloc, "reserved_bytes") == (0, 4 * BLOCK, 4 * BLOCK, 4 * BLOCK)
    assert alloc.memory_info() == (4 * BLOCK, 4 * BLOCK)
    alloc.allocate(BLOCK)
    assert parts(alloc, "segment") == (1, 1, 2, 1)
    assert alloc.pressure_stats()["growths"] == 1


def test_a_dictionary_is_a_copy(strategy):
    alloc = small(strategy)
    alloc.memory_stats().clear()
    alloc.pressure_stats()["failures"]["exhausted"] = 99
    assert set(alloc.memory_stats()) == MEMORY
    assert alloc.pressure_stats()["failures"]["exhausted"] == 0


def test_the_numbers_of_many_random_calls_equal_a_model(strategy, manual_gc):  # case 88
    chance = random.Random(88)
    alloc = small(strategy, blocks=16, max_wait=0.0, gc=False)
    live, allocated, freed, failed = [], 0, 0, 0
    for _ in range(20_000):
        if live and chance.random() < 0.5:
            freed += -(-live.pop(chance.randrange(len(live))).nbytes // 128) * 128
            continue
        try:
            live.append(alloc.allocate(chance.randrange(1, 2 * BLOCK)))
            allocated += -(-live[-1].nbytes // 128) * 128
        except MemoryError:
            failed += 1
    current, _, sum_allocated, sum_freed = parts(alloc, "allocated_bytes")
    assert (sum_allocated, sum_freed, current) == (allocated, freed, allocated - freed)
    assert alloc.memory_stats()["num_ooms"] == failed > 0
    alloc.check_invariants()
