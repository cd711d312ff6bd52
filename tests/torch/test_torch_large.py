# SPDX-License-Identifier: Apache-2.0
"""A device of 110 GiB, which costs what is touched of it."""

import gc
import threading

import pytest
import torch
from support import Task
from torch_support import Node, pressure, used

GIB = 1 << 30
torch.spyre.memory.configure(capacity=110 * GIB)


def gibibyte():
    return torch.empty(GIB, dtype=torch.uint8, device="spyre")


def resident():
    """Bytes of host memory that this process has."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


@pytest.fixture(autouse=True)
def nothing_is_left():
    gc.collect()
    before = used()
    yield
    gc.collect()
    assert used() == before


def test_what_is_not_touched_costs_nothing_and_what_was_comes_back():
    torch.spyre.init()
    before = resident()
    kept = [gibibyte() for _ in range(80)]
    assert used() >= 80 * GIB
    assert resident() - before < GIB // 16
    for tensor in kept[:2]:
        tensor.fill_(1)
    assert 2 * GIB <= resident() - before < 2 * GIB + GIB // 4
    del tensor
    kept.clear()
    assert resident() - before < GIB // 4
    assert gibibyte()[::4096].sum().item() == 0  # fresh pages, not the old contents


def test_exhaustion_is_an_error_and_the_device_recovers():
    kept = []
    with pytest.raises(RuntimeError, match="out of memory|OOM|OutOfMemory"):
        for _ in range(200):
            kept.append(gibibyte())
    assert 80 <= len(kept) <= 110
    before = pressure("events", "reclaims")
    assert before[0] >= 1 and before[1] >= 1
    kept.pop()
    kept.append(gibibyte())
    assert pressure("events", "reclaims") == before
    kept.clear()
    assert gibibyte().device.type == "spyre"


def test_dead_tensors_are_free_at_once():
    before = pressure("events")
    for _ in range(500):
        gibibyte()
    assert pressure("events") == before


def test_a_tensor_of_random_numbers_holds_them():
    x = torch.randn(GIB // 4, device="spyre")
    assert used() >= GIB
    assert abs(x.mean().item()) < 0.01
    assert abs(x[: 1 << 20].std().item() - 1) < 0.01


def test_cycles_of_large_tensors_are_collected_under_pressure():
    gc.disable()
    try:
        reclaims = pressure("reclaims")
        for _ in range(300):
            Node(gibibyte())
        assert pressure("reclaims") - reclaims >= 3
        assert pressure("out_of_memory") <= 1  # of the test above
    finally:
        gc.enable()


def test_sizes_and_types_count_to_the_byte():
    before = used()
    kept, expected = [], 0
    for dtype in (torch.float16, torch.float32):
        for count in (1, 63, 64, 65, 4096, 100_000, 1 << 20):
            kept.append(torch.empty(count, dtype=dtype, device="spyre").fill_(2))
            expected += -(-count * kept[-1].element_size() // 128) * 128
            assert used() - before == expected
            assert kept[-1].cpu().eq(2).all()
    addresses = [tensor.untyped_storage().data_ptr() for tensor in kept]
    assert len(set(addresses)) == len(addresses) and 0 not in addresses
    kept.clear()
    assert used() == before


def test_threads_that_churn_leave_nothing():
    before = used()
    start = threading.Barrier(8)

    def churn(seed):
        generator = torch.Generator().manual_seed(seed)
        kept = []
        start.wait()
        for size in torch.randint(1, 1 << 20, (300,), generator=generator).tolist():
            kept.append(torch.empty(size, dtype=torch.uint8, device="spyre"))
            kept[-1][0] = seed
            if len(kept) > 8:
                assert kept.pop(seed % 8)[0].item() == seed

    for task in [Task(churn, seed) for seed in range(8)]:
        task.result()
    assert used() == before
