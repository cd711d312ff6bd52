# SPDX-License-Identifier: Apache-2.0
"""How much memory the device has in use, and what is done when it runs out.

In the manner of ``torch.cuda.memory``. Sizes are bytes, rounded up to 128 for each tensor. Every
``device`` is 0, ``"spyre"``, a ``torch.device`` or None. All may be called from any thread; counting
functions give zeros before the first use of the device, and do not make the allocator.
"""

from collections import defaultdict

from .._core import format_bytes
from . import configuration
from .configuration import configure, device_index, register_memory_pressure_callback

__all__ = [
    "configure",
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "pressure_stats",
    "register_memory_pressure_callback",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
]


def _in_use(device):
    device_index(device)
    return configuration.allocator() if configuration.is_initialized() else None


def memory_stats(device=None):
    """Counters, by the names of ``torch.cuda.memory_stats``: ``allocated_bytes.all.current``,
    ``.peak``, ``.allocated``, ``.freed``, and so on. A dict that has 0 for what is not in it."""
    allocator = _in_use(device)
    return defaultdict(int, allocator.memory_stats() if allocator is not None else {})


def pressure_stats(device=None):
    """What was done when memory was short: ``events``, ``reclaims``, ``collections``, ``failures`` by
    reason, and so on, as :meth:`spyre_alloc.SpyreAllocator.pressure_stats` has them. Empty before
    first use."""
    allocator = _in_use(device)
    return allocator.pressure_stats() if allocator is not None else {}


def memory_allocated(device=None):
    """Bytes of all tensors now."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device=None):
    """The most bytes of all tensors since the start or :func:`reset_peak_memory_stats`."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device=None):
    """Bytes of all regions that are taken from the device."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device=None):
    """The most bytes of all regions since the start or :func:`reset_peak_memory_stats`."""
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device=None):
    """Start all peaks again, at what is now."""
    allocator = _in_use(device)
    if allocator is not None:
        allocator.reset_peak_memory_stats()


def reset_accumulated_memory_stats(device=None):
    """Start counting again: all that is allocated and freed from now on, and pressure."""
    allocator = _in_use(device)
    if allocator is not None:
        allocator.reset_accumulated_memory_stats()


def mem_get_info(device=None):
    """Free bytes and all bytes of the device, a tuple. Makes the allocator."""
    device_index(device)
    return configuration.allocator().memory_info()


def empty_cache():
    """Give regions without a tensor back to the device; they are taken again when needed."""
    allocator = _in_use(None)
    if allocator is not None:
        allocator.empty_cache()


def memory_summary(device=None, abbreviated=False):
    """The counters as a text to read; ``abbreviated`` leaves out what pressure did."""
    stats, pressure = memory_stats(device), pressure_stats(device)
    lines = [f"{'spyre memory':<24}{'current':>12}{'peak':>12}{'allocated':>12}{'freed':>12}"]
    for title, name, show in (
        ("tensors", "allocation", str),
        ("allocated", "allocated_bytes", format_bytes),
        ("requested", "requested_bytes", format_bytes),
        ("reserved", "reserved_bytes", format_bytes),
    ):
        columns = (stats[f"{name}.all.{each}"] for each in ("current", "peak", "allocated", "freed"))
        lines.append(f"{title:<24}" + "".join(f"{show(value):>12}" for value in columns))
    if not abbreviated:
        for name in ("events", "reclaims", "collections", "out_of_memory"):
            lines.append(f"{'pressure: ' + name.replace('_', ' '):<24}{pressure.get(name, 0):>12}")
        lines.append(f"{'reclaimed':<24}{format_bytes(pressure.get('bytes_reclaimed', 0)):>12}")
    return "\n".join(lines)


def _spyre_get_allocator_stats(device=0):
    return memory_stats(device)


def _spyre_reset_accumulated_stats(device=0):
    reset_accumulated_memory_stats(device)


def _spyre_reset_peak_stats(device=0):
    reset_peak_memory_stats(device)
