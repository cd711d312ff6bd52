# SPDX-License-Identifier: Apache-2.0
"""Live data that fits does not fail, however many threads make garbage."""

import gc

import torch
from support import Task
from torch_support import Node, block, pressure, small, used

import spyre_alloc

THREADS, STEPS = 4, 1000
# Each thread keeps two blocks and asks for a third: 12 of 16 are alive at most.
small(16, max_wait=60.0, gc=spyre_alloc.GcOptions(young_first=True, patience=60.0))


def test_no_request_fails_and_pressure_was_there():
    def work():
        live = []
        for _ in range(STEPS):
            live.append(Node(block()))
            if len(live) > 2:
                del live[0]

    gc.collect()
    gc.disable()
    gc.freeze()
    tasks = [Task(work) for _ in range(THREADS)]
    for task in tasks:
        task.join(200.0)
        task.result()
    assert pressure("out_of_memory") == 0
    assert pressure("events") >= STEPS * THREADS // 16
    assert pressure("collections") >= pressure("reclaims") > 10
    stats = torch.spyre.memory_stats()
    assert stats["allocation.all.allocated"] == STEPS * THREADS
    gc.collect()
    assert used() == 0
