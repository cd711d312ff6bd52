# SPDX-License-Identifier: Apache-2.0
"""The devices that regions come from, with the limits of real firmware."""

import gc
import sys
import time

import pytest
import spyre_alloc
from support import BLOCK, failure, fill

ON_DEMAND = dict(acquisition="on-demand", fallback_sizes=[BLOCK], max_wait=0.0)


def test_a_device_counts_its_calls_and_bytes(strategy):
    device = spyre_alloc.SimulatedDevice("1MiB")
    assert (device.calls, device.bytes_in_use) == (0, 0)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, regions=4)
    assert (device.calls, device.bytes_in_use) == (4, 2**20)
    del alloc
    assert (device.calls, device.bytes_in_use) == (4, 0)


def test_two_allocators_may_share_a_device(strategy):
    device = spyre_alloc.SimulatedDevice(4 * BLOCK)
    first = spyre_alloc.SpyreAllocator(strategy, device=device, **ON_DEMAND)
    second = spyre_alloc.SpyreAllocator(strategy, device=device, **ON_DEMAND)
    kept = fill(first)
    failure(second.allocate, BLOCK)
    kept.clear()
    failure(second.allocate, BLOCK)
    assert first.empty_cache() == 4 * BLOCK
    assert second.allocate(BLOCK).nbytes == BLOCK


def test_a_large_device_costs_only_what_is_touched(strategy):
    alloc = spyre_alloc.SpyreAllocator(strategy, capacity="110GiB")
    buffer = alloc.allocate("1GiB")
    memoryview(buffer)[-1] = 1
    assert alloc.memory_info()[1] > 100 * 2**30


def test_capacity_is_shared_out_to_the_domains(strategy):
    device = spyre_alloc.SimulatedDevice(8 * BLOCK, domains=4)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, regions=1, max_wait=0.0)
    for domain in range(4):
        kept = alloc.allocate(2 * BLOCK, domain=domain)
        error = failure(alloc.allocate, BLOCK, domain=domain)
        assert (error.domain, error.total) == (domain, 2 * BLOCK)
        assert kept.chunks[0]["domain"] == domain


def test_the_number_of_regions_may_be_limited(strategy):
    device = spyre_alloc.SimulatedDevice(8 * BLOCK, table_entries=2)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, **ON_DEMAND)
    assert len(fill(alloc)) == 2
    with pytest.raises(RuntimeError, match="refused a region"):
        spyre_alloc.SpyreAllocator(strategy, device=device, regions=2)


def test_the_size_of_a_region_may_be_limited(strategy):
    device = spyre_alloc.SimulatedDevice(8 * BLOCK, max_region=2 * BLOCK)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, **ON_DEMAND)
    assert alloc.allocate(2 * BLOCK).nbytes == 2 * BLOCK
    assert failure(alloc.allocate, 3 * BLOCK).reason == "larger-than-any-region"


def test_the_bytes_of_all_regions_may_be_limited(strategy):
    device = spyre_alloc.SimulatedDevice(8 * BLOCK, domains=2, budget=3 * BLOCK)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, **ON_DEMAND)
    assert len(fill(alloc)) == 3
    assert device.bytes_in_use == 3 * BLOCK


def test_exhaustion_at_a_limit_runs_the_callbacks(strategy):  # case 79
    device = spyre_alloc.SimulatedDevice(8 * BLOCK, table_entries=2)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, **ON_DEMAND)
    kept = fill(alloc)
    alloc.register_memory_pressure_callback(lambda event: kept.clear())
    assert alloc.allocate(BLOCK).nbytes == BLOCK
    assert alloc.pressure_stats()["events"] == 1


def test_one_call_may_fail_and_the_allocator_bears_it(strategy):  # case 89
    device = spyre_alloc.SimulatedDevice(8 * BLOCK, fail_on_call=2)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, gc=False, **ON_DEMAND)
    kept = [alloc.allocate(BLOCK)]
    failed = 0
    while len(kept) < 3:
        try:
            kept.append(alloc.allocate(BLOCK))
        except MemoryError:
            failed += 1
    assert failed <= 1
    alloc.check_invariants()
    assert device.bytes_in_use == 3 * BLOCK


def test_a_failing_construction_gives_everything_back(strategy):  # case 95
    device = spyre_alloc.SimulatedDevice(8 * BLOCK, fail_on_call=3)
    with pytest.raises(RuntimeError, match="the device refused a region of"):
        spyre_alloc.SpyreAllocator(strategy, device=device, regions=4)
    assert device.bytes_in_use == 0
    spyre_alloc.SpyreAllocator(strategy, device=device, regions=4).check_invariants()


def test_latency_is_what_a_region_takes(strategy):
    device = spyre_alloc.SimulatedDevice(8 * BLOCK, latency=0.05)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, **ON_DEMAND)
    began = time.monotonic()
    alloc.allocate(BLOCK)
    assert time.monotonic() - began >= 0.05


def test_an_offset_device_has_addresses_and_no_memory(strategy):
    device = spyre_alloc.OffsetDevice("1TiB", domains=2)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device)
    kept = [alloc.allocate("1GiB") for _ in range(8)]
    assert len({buffer.address for buffer in kept}) == 8
    alloc.check_invariants()


def test_both_are_device_memory():
    for device in (spyre_alloc.SimulatedDevice(), spyre_alloc.OffsetDevice()):
        assert isinstance(device, spyre_alloc.DeviceMemory)


REFUSED = [
    ("SimulatedDevice", dict(capacity=0), ValueError, "capacity is 0; allowed are 128"),
    ("SimulatedDevice", dict(capacity=129, domains=2), ValueError, "allowed are 256"),
    ("SimulatedDevice", dict(capacity=None), TypeError, "capacity must be an int"),
    ("SimulatedDevice", dict(domains=0), ValueError, "domains is 0; allowed are 1 to 64"),
    ("SimulatedDevice", dict(domains=65), ValueError, "allowed are 1 to 64"),
    ("SimulatedDevice", dict(domains="2"), TypeError, "domains must be an int"),
    ("SimulatedDevice", dict(table_entries=-1), ValueError, "table_entries is -1"),
    ("SimulatedDevice", dict(table_entries="2"), TypeError, "table_entries must be an int"),
    ("SimulatedDevice", dict(max_region=1), ValueError, "max_region is 1; allowed are 128"),
    ("SimulatedDevice", dict(max_region=2**70), OverflowError, "max_region"),
    ("SimulatedDevice", dict(budget="x"), ValueError, "budget: 'x' is not a size"),
    ("SimulatedDevice", dict(latency=-1), ValueError, "latency is -1; allowed are 0 to 60"),
    ("SimulatedDevice", dict(latency="1"), TypeError, "latency must be a number"),
    ("SimulatedDevice", dict(fail_on_call=0), ValueError, "fail_on_call is 0; allowed are 1"),
    ("SimulatedDevice", dict(fail_on_call=1.0), TypeError, "fail_on_call must be an int"),
    ("OffsetDevice", dict(capacity=-1), ValueError, "capacity is -1; allowed are 128"),
    ("OffsetDevice", dict(domains=-1), ValueError, "domains is -1; allowed are 1 to 64"),
]


@pytest.mark.parametrize("name, arguments, error, text", REFUSED)
def test_a_device_refuses(name, arguments, error, text):
    with pytest.raises(error, match=text) as caught:
        getattr(spyre_alloc, name)(**arguments)
    assert type(caught.value) is error


def test_the_last_reference_to_a_device_may_die_on_a_native_thread(strategy):  # case 11
    device = spyre_alloc.SimulatedDevice(capacity="64KiB")
    references = sys.getrefcount(device)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, regions=1)
    buffer = alloc.allocate(128)
    assert sys.getrefcount(device) == references, "native code would drop it without the GIL"
    worker = spyre_alloc.NativeWorker(alloc, 128)
    del device, alloc, buffer
    gc.collect()
    worker.stop()
