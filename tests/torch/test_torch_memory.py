# SPDX-License-Identifier: Apache-2.0
"""The memory interface, in the manner of torch.cuda."""

import importlib

import pytest
import torch

MIB = 1 << 20


def test_before_first_use_all_is_zero_and_nothing_is_made():
    # The first test of this process.
    assert not torch.spyre.is_initialized()
    assert torch.spyre.memory_allocated() == torch.spyre.max_memory_allocated() == 0
    assert torch.spyre.memory_stats()["allocated_bytes.all.peak"] == 0
    assert torch.spyre.pressure_stats() == {}
    assert "tensors" in torch.spyre.memory_summary()
    torch.spyre.reset_peak_memory_stats()
    torch.spyre.reset_accumulated_memory_stats()
    torch.spyre.empty_cache()
    assert not torch.spyre.is_initialized()
    torch.spyre.memory.configure(capacity=64 * MIB, regions=4)
    torch.spyre.memory.configure(capacity=32 * MIB, regions=4)  # not in use: may change its mind
    assert not torch.spyre.is_initialized()
    assert torch.spyre.mem_get_info() == (32 * MIB, 32 * MIB)
    assert torch.spyre.is_initialized()


@pytest.mark.parametrize("shape, dtype, nbytes", [
    ((4096,), torch.float16, 8192),
    ((1,), torch.uint8, 128),
    ((33,), torch.float32, 256),
    ((0,), torch.float32, 0),
    ((3, 0, 5), torch.float64, 0),
])
def test_a_tensor_counts_its_bytes_rounded_up_to_the_granule(shape, dtype, nbytes):
    before = torch.spyre.memory_allocated()
    x = torch.empty(shape, dtype=dtype, device="spyre")
    assert torch.spyre.memory_allocated() - before == nbytes
    assert (x.data_ptr() != 0) == (nbytes != 0)
    assert x.untyped_storage().data_ptr() % 128 == 0
    del x
    assert torch.spyre.memory_allocated() == before


def test_counters():
    torch.spyre._spyre_reset_accumulated_stats(0)
    torch.spyre._spyre_reset_peak_stats(0)
    base = torch.spyre.memory_allocated()
    x = torch.empty(MIB, dtype=torch.uint8, device="spyre")
    y = torch.empty(2 * MIB, dtype=torch.uint8, device="spyre")
    del x
    stats = torch.spyre._spyre_get_allocator_stats(0)
    assert stats == torch.spyre.memory_stats(0)
    assert stats["allocated_bytes.all.current"] - base == 2 * MIB
    assert stats["allocated_bytes.all.peak"] - base == 3 * MIB
    assert stats["allocated_bytes.all.allocated"] == 3 * MIB
    assert stats["allocated_bytes.all.freed"] == MIB
    assert stats["allocation.all.allocated"] == 2
    assert torch.spyre.max_memory_allocated() - base == 3 * MIB
    torch.spyre.reset_peak_memory_stats()
    assert torch.spyre.max_memory_allocated() - base == 2 * MIB
    torch.spyre.reset_accumulated_memory_stats()
    assert torch.spyre.memory_stats()["allocated_bytes.all.allocated"] == 0
    assert "2.00 MiB" in torch.spyre.memory_summary()
    assert "pressure" not in torch.spyre.memory_summary(abbreviated=True)
    del y


def test_empty_cache_gives_regions_back_and_they_come_again():
    reserved = torch.spyre.memory_reserved()
    assert reserved == 32 * MIB
    torch.spyre.empty_cache()
    assert torch.spyre.memory_reserved() < reserved
    assert torch.spyre.mem_get_info()[1] == 32 * MIB
    # Three regions of four are for tensors, one is for programs.
    kept = [torch.empty(8 * MIB, dtype=torch.uint8, device="spyre") for _ in range(3)]
    assert torch.spyre.memory_reserved() == 24 * MIB
    assert torch.spyre.memory.max_memory_reserved() == reserved
    del kept


def test_views_and_slices_keep_the_storage():
    before = torch.spyre.memory_allocated()
    view = torch.empty(MIB, dtype=torch.uint8, device="spyre")[5:6]
    assert torch.spyre.memory_allocated() - before == MIB
    del view
    assert torch.spyre.memory_allocated() == before


def test_the_device_cannot_be_configured_any_more():
    torch.empty(1, device="spyre")
    with pytest.raises(RuntimeError, match="in use: configure it before its first tensor"):
        torch.spyre.memory.configure(strategy="release-condvar")


def test_the_module_can_be_imported_by_all_its_names():
    assert importlib.import_module("torch.spyre.memory") is torch.spyre.memory
    assert importlib.import_module("spyre_alloc.torch") is torch.spyre
    for name in torch.spyre.memory.__all__:
        assert getattr(torch.spyre, name) is getattr(torch.spyre.memory, name)


def test_a_callback_must_be_callable():
    with pytest.raises(TypeError, match="fn must be callable, not int"):
        torch.spyre.register_memory_pressure_callback(3)


def test_the_profiler_sees_allocations_and_releases():
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        x = torch.empty(MIB, dtype=torch.uint8, device="spyre")
        del x
    sizes = [
        event.nbytes()
        for event in profile.profiler.kineto_results.events()
        if event.name() == "[memory]" and "PrivateUse1" in str(event.device_type())
    ]
    assert sizes == [MIB, -MIB]
