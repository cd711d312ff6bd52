# SPDX-License-Identifier: Apache-2.0
"""The PyTorch device ``spyre``: what ``torch.spyre`` is.

Its memory comes from a :class:`spyre_alloc.SpyreAllocator`: when it runs out, reference cycles that
hold tensors are collected, and callbacks run, before a request fails. The device is a simulation on
host memory, so tensors hold data and operators without a kernel of their own run on the CPU.

>>> import torch
>>> import spyre_alloc.torch  # where the package is installed, `import torch` suffices
>>> x = torch.randn(1000, 1000, device="spyre")
>>> y = (x @ x).cpu()
"""


def _autoload():
    """What ``import torch`` calls; importing this module has done all there is to do."""


# PyTorch loads this module while it is imported itself, and wants _autoload then.
import sys  # noqa: E402

import torch  # noqa: E402

from .. import _torch  # noqa: E402
from . import configuration, memory, random_state, streams  # noqa: E402
from .configuration import is_initialized  # noqa: E402
from .memory import *  # noqa: E402, F403
from .memory import (  # noqa: E402, F401
    _spyre_get_allocator_stats,
    _spyre_reset_accumulated_stats,
    _spyre_reset_peak_stats,
)
from .random_state import *  # noqa: E402, F403
from .streams import *  # noqa: E402, F403

__all__ = [
    "current_device",
    "device",
    "device_count",
    "get_amp_supported_dtype",
    "get_device_name",
    "init",
    "is_available",
    "is_initialized",
    "memory",
    "set_device",
    *memory.__all__,
    *random_state.__all__,
    *streams.__all__,
]


def init():
    """Make the allocator now. It is made by itself when the first tensor is.

    Raises
    ------
    RuntimeError
        In a forked child of a process that had used the device.
    """
    configuration.allocator()


_lazy_init = init


def _is_in_bad_fork():
    return _torch.is_in_bad_fork()


def is_available():
    """Always True: the device is simulated."""
    return True


def device_count():
    """Always 1."""
    return 1


def current_device():
    """Always 0."""
    return 0


def get_device_name(device=None):
    """A name to show."""
    configuration.device_index(device)
    return "spyre (simulated on host memory)"


def set_device(device):
    """Choose the device; there is number 0 only.

    Raises
    ------
    RuntimeError
        For any other.
    """
    configuration.device_index(device)


class device:
    """Context manager that chooses a device; there is number 0 only."""

    def __init__(self, device):
        self.idx = configuration.device_index(device)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def get_amp_supported_dtype():
    """What ``torch.autocast("spyre")`` may choose."""
    return [torch.float16, torch.bfloat16]


def _register():
    torch.utils.rename_privateuse1_backend("spyre")
    torch._register_device_module("spyre", sys.modules[__name__])
    sys.modules["torch.spyre.memory"] = memory  # what `import torch.spyre.memory` finds
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )


_register()
