# SPDX-License-Identifier: Apache-2.0
"""What an allocator gives while there is memory."""

import pytest
import spyre_alloc
from support import BLOCK, STRATEGIES, failure, fill, small

MIB = 2**20


def domains(strategy, count=2, **options):
    device = spyre_alloc.SimulatedDevice(count * 4 * BLOCK, domains=count)
    return spyre_alloc.SpyreAllocator(strategy, device=device, regions=1, **options)


def test_the_default_strategy_is_hold_mutex():
    assert spyre_alloc.SpyreAllocator(capacity="1MiB").strategy == "hold-mutex"
    assert STRATEGIES[0] == "hold-mutex"


def test_it_tells_its_strategy(strategy):
    alloc = spyre_alloc.SpyreAllocator(strategy, capacity="1MiB")
    assert alloc.strategy == strategy
    with pytest.raises(AttributeError):
        alloc.strategy = "other"


def test_the_default_capacity_is_8_gib():
    free, total = spyre_alloc.SpyreAllocator().memory_info()
    assert free == total
    assert 8 * 2**30 - 7 * 128 <= total <= 8 * 2**30


@pytest.mark.parametrize("capacity", [MIB, "1MiB", "1 mib", "1024KiB", "1M", "1048576", "1048576B"])
def test_sizes_are_numbers_or_texts(strategy, capacity):
    alloc = spyre_alloc.SpyreAllocator(strategy, capacity=capacity, regions=1)
    assert alloc.memory_info() == (MIB, MIB)
    assert alloc.allocate(capacity).nbytes == MIB


def test_decimal_units_are_decimal(strategy):
    assert small(strategy).allocate("1kB").nbytes == 1000
    assert small(strategy).allocate("1.5KiB").nbytes == 1536


def test_what_has_an_index_is_a_number(strategy):
    numpy = pytest.importorskip("numpy")
    alloc = small(strategy)
    assert alloc.allocate(numpy.int64(256)).nbytes == 256
    assert alloc.allocate(numpy.uint8(200)).nbytes == 200


def test_regions_divide_the_capacity_the_first_is_for_programs(strategy):
    alloc = spyre_alloc.SpyreAllocator(strategy, capacity=8 * BLOCK, regions=4, max_wait=0.0)
    stats = alloc.memory_stats()
    assert stats["segment.all.current"] == 4
    assert stats["largest_free_bytes"] == 2 * BLOCK
    program = alloc.allocate(2 * BLOCK, memory_type="program")
    tensors = fill(alloc, 2 * BLOCK)
    assert len(tensors) == 3
    regions = [buffer.chunks[0]["region"] for buffer in [program, *tensors]]
    assert sorted(regions) == [0, 1, 2, 3] and regions[0] == 0
    assert failure(alloc.allocate, BLOCK, memory_type="program").memory_type == "program"


def test_regions_are_taken_on_demand_by_option(strategy):
    device = spyre_alloc.SimulatedDevice(8 * BLOCK)
    alloc = spyre_alloc.SpyreAllocator(
        strategy, device=device, acquisition="on-demand", fallback_sizes=["256KiB", 2 * BLOCK]
    )
    assert device.calls == 0
    first = alloc.allocate(BLOCK)
    assert device.bytes_in_use == 4 * BLOCK
    second = alloc.allocate(4 * BLOCK)
    assert device.bytes_in_use == 8 * BLOCK
    assert alloc.pressure_stats()["events"] == 0
    assert alloc.pressure_stats()["growths"] == 2
    assert first.chunks[0]["region"] != second.chunks[0]["region"]


def test_empty_cache_gives_free_regions_back_and_they_return_when_needed(strategy):
    device = spyre_alloc.SimulatedDevice(4 * BLOCK)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, regions=2)
    buffer = alloc.allocate(BLOCK)
    assert alloc.empty_cache() == 2 * BLOCK
    assert device.bytes_in_use == 2 * BLOCK
    buffer.free()
    assert alloc.empty_cache() == 2 * BLOCK
    assert alloc.empty_cache() == 0
    assert device.bytes_in_use == 0
    assert alloc.allocate(BLOCK).nbytes == BLOCK
    assert alloc.memory_info()[1] == 4 * BLOCK


def test_equal_requests_get_equal_addresses(strategy):
    def offsets():
        alloc = small(strategy, blocks=16)
        kept = [alloc.allocate(size) for size in (100, 5000, 128, BLOCK, 300)]
        kept.pop(1)
        kept.append(alloc.allocate(1000))
        return [buffer.chunks[0]["offset"] for buffer in kept]

    assert offsets() == offsets()


def test_region_order_decides_where_the_next_block_goes(strategy):
    def region_of_second(order):
        alloc = spyre_alloc.SpyreAllocator(
            strategy, capacity=9 * BLOCK, regions=3, region_order=order
        )
        kept = [alloc.allocate(BLOCK), alloc.allocate(BLOCK)]
        return [buffer.chunks[0]["region"] for buffer in kept]

    assert len(set(region_of_second("most-free"))) == 2
    assert len(set(region_of_second("least-free"))) == 1


def test_a_domain_is_where_the_memory_comes_from(strategy):
    alloc = domains(strategy)
    for domain in (0, 1):
        assert alloc.allocate(BLOCK, domain=domain).chunks[0]["domain"] == domain
    assert alloc.allocate(BLOCK, domain=[1, 0]).chunks[0]["domain"] == 1
    assert alloc.allocate(BLOCK, near=1).chunks[0]["domain"] == 1


def test_a_full_domain_is_followed_by_the_next_of_the_list_or_the_nearest(strategy):
    alloc = domains(strategy, count=3, max_wait=0.0)
    kept = alloc.allocate(4 * BLOCK, domain=2)
    assert alloc.allocate(BLOCK, domain=(2, 0)).chunks[0]["domain"] == 0
    assert alloc.allocate(BLOCK, near=2).chunks[0]["domain"] == 1
    error = failure(alloc.allocate, BLOCK, domain=2)
    assert error.domain == 2
    assert kept.nbytes == 4 * BLOCK


def test_interleaved_memory_is_spread_over_the_domains_evenly(strategy):
    alloc = domains(strategy)
    chunks = alloc.allocate(2 * BLOCK, policy="interleave").chunks
    assert [chunk["domain"] for chunk in chunks] == [0, 1]
    assert [chunk["nbytes"] for chunk in chunks] == [BLOCK, BLOCK]


def test_interleaving_is_all_or_nothing(strategy):
    alloc = domains(strategy, max_wait=0.0)
    kept = alloc.allocate(4 * BLOCK, domain=1)
    failure(alloc.allocate, 2 * BLOCK, policy="interleave")
    assert alloc.memory_info()[0] == 4 * BLOCK
    alloc.check_invariants()
    assert kept.nbytes == 4 * BLOCK


def test_scattered_memory_uses_what_is_left_in_pieces(strategy):
    alloc = small(strategy, blocks=4, max_wait=0.0)
    kept = fill(alloc)
    del kept[2], kept[0]
    assert failure(alloc.allocate, 2 * BLOCK).reason == "fragmented"
    buffer = alloc.allocate(2 * BLOCK, policy="scatter")
    assert len(buffer.chunks) == 2
    assert sum(chunk["nbytes"] for chunk in buffer.chunks) == 2 * BLOCK


def test_try_allocate_gives_none_where_nothing_fits(strategy):
    alloc = small(strategy)
    kept = [alloc.try_allocate(4 * BLOCK)]
    assert kept[0].nbytes == 4 * BLOCK
    assert alloc.try_allocate(1) is None
    assert alloc.try_allocate(0).nbytes == 0
    assert alloc.pressure_stats()["out_of_memory"] == 0


def test_allocators_share_nothing(strategy):
    first, second = small(strategy), small(strategy)
    kept = first.allocate(4 * BLOCK)
    assert second.memory_info()[0] == 4 * BLOCK
    assert second.allocate(BLOCK).address != kept.address


def test_it_shows_what_it_is(strategy):
    alloc = small(strategy, blocks=16)
    kept = alloc.allocate(8 * BLOCK)
    text = repr(alloc)
    assert strategy in text and "512.00 KiB of 1.00 MiB" in text
    assert kept.nbytes == 8 * BLOCK


def test_the_version_is_that_of_the_library():
    assert spyre_alloc.__version__.count(".") == 2
