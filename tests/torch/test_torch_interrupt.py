# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends a wait inside of PyTorch, and arrives as itself."""

import os
import signal

import pytest
import torch
from support import Task, eventually
from torch_support import BLOCK, block, fill, pressure, small, used

small(4, strategy="release-condvar", max_wait=3600.0, gc=False)


@pytest.mark.parametrize(
    "make", [block, lambda: torch.UntypedStorage(BLOCK, device="spyre")], ids=["detached", "attached"]
)
def test_the_wait_ends_and_nothing_is_lost(make):
    kept = fill()
    torch.spyre.reset_accumulated_memory_stats()

    def interrupt():
        eventually(lambda: pressure("waits") == 1, "the request waits")
        os.kill(os.getpid(), signal.SIGINT)

    task = Task(interrupt)
    with pytest.raises(KeyboardInterrupt):
        make()
    task.result()
    assert pressure("events", "timeouts") == (1, 0)
    assert used() == 4 * BLOCK
    kept.pop()
    assert make() is not None
