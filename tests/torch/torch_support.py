# SPDX-License-Identifier: Apache-2.0
"""What the tests of the PyTorch back end share: small devices, garbage, counters."""

import os

import support
import torch

BLOCK = 64 * 1024


def small(blocks=16, **options):
    """Configures the device for so many tensors of BLOCK bytes, with the strategy of the test run."""
    options.setdefault("strategy", os.environ.get("SPYRE_ALLOC_STRATEGY", "hold-mutex"))
    torch.spyre.memory.configure(capacity=blocks * BLOCK, regions=1, **options)
    torch.spyre.init()


def block(nbytes=BLOCK):
    return torch.empty(nbytes, dtype=torch.uint8, device="spyre")


class Node:
    """A cycle of its own; what it holds is freed by the garbage collector only."""

    def __init__(self, held):
        self.me = self
        self.held = held


def litter(count, make=block):
    """Leaves so many tensors that only the garbage collector can free."""
    for _ in range(count):
        Node(make())


def fill():
    """Takes all that is free; the list keeps it."""
    free, _ = torch.spyre.mem_get_info()
    return [block() for _ in range(free // BLOCK)]


def used():
    return torch.spyre.memory_allocated()


def pressure(*names):
    """The named pressure statistics; a single one as itself."""
    return support.pressure(torch.spyre, *names)
