# SPDX-License-Identifier: Apache-2.0
"""The one allocator of the process: how it is configured, and when it is made."""

import atexit
import os
import threading

import torch

import spyre_alloc

from .. import _torch
from .._core import format_bytes, parse_bytes

#: Where a keyword of configure() may also come from, and how its text is read.
ENVIRONMENT = {
    "SPYRE_ALLOC_STRATEGY": ("strategy", str),
    "SPYRE_ALLOC_CAPACITY": ("capacity", str),
    "SPYRE_ALLOC_REGIONS": ("regions", int),
    "SPYRE_ALLOC_MAX_REGION": ("max_region", str),
    "SPYRE_ALLOC_ACQUISITION": ("acquisition", str),
    "SPYRE_ALLOC_MAX_WAIT": ("max_wait", float),
}

# A full collection takes long where torch is imported; a young one takes microseconds.
_DEFAULTS = {"capacity": "110GiB", "gc": spyre_alloc.GcOptions(young_first=True)}

_GRANULE = 128
_MOST_REGIONS = 64

_lock = threading.RLock()
_configured = None  # made by configure(), and not in use yet
_in_use = None
_early_callbacks = []  # registered before there was an allocator


class PressureCallback:
    """A function that :func:`register_memory_pressure_callback` registered. Dropping this object
    does not unregister it."""

    def __init__(self, function, priority):
        self._function = function
        self._priority = priority
        self._registration = None
        self._wanted = True

    def _register_with(self, allocator):
        if self._wanted:
            self._registration = allocator.register_memory_pressure_callback(
                self._function, priority=self._priority
            )

    @property
    def registered(self):
        """bool: Whether the function can still be called."""
        return self._wanted

    def unregister(self):
        """Unregister; again does nothing. Blocks, with the GIL released, until no other thread is
        inside the function; from inside it returns at once."""
        with _lock:
            self._wanted = False
            registration, self._registration = self._registration, None
        if registration is not None:
            registration.unregister()


def _from_environment(given):
    """Settings that the environment has and `given` has not, and their texts for an error."""
    settings, texts = {}, []
    for variable, (keyword, kind) in ENVIRONMENT.items():
        text = os.environ.get(variable)
        if text is None or keyword in given:
            continue
        texts.append(f"{variable}={text!r}")
        try:
            settings[keyword] = kind(text)
        except ValueError:
            allowed = "a whole number" if kind is int else "a number of seconds"
            raise ValueError(f"{texts[-1]}: allowed is {allowed}") from None
    return settings, texts


def _make(settings):
    made = spyre_alloc.SpyreAllocator(**settings, _reporter=_torch.make_reporter())
    asked, total = settings.get("capacity"), made.memory_info()[1]
    if asked is not None and total < _usable(asked):
        raise ValueError(
            f"capacity is {asked}, but its regions hold {format_bytes(total)} only; "
            "allowed is more with more regions or a larger max_region"
        )
    return made


def _usable(capacity):
    """The bytes of a capacity that regions must hold: it is cut into equal ones, of whole granules."""
    nbytes = parse_bytes(capacity) if isinstance(capacity, str) else capacity
    return nbytes - _GRANULE * _MOST_REGIONS


def configure(**options):
    """Choose the allocator of the device, before its first use.

    Parameters
    ----------
    **options
        The keywords of :class:`spyre_alloc.SpyreAllocator`: ``strategy``, ``capacity``, ``regions``,
        ``max_wait``, ``gc`` and so on. What is not given comes from the environment
        (``SPYRE_ALLOC_STRATEGY``, ``SPYRE_ALLOC_CAPACITY``, ``SPYRE_ALLOC_REGIONS``,
        ``SPYRE_ALLOC_MAX_REGION``, ``SPYRE_ALLOC_ACQUISITION``, ``SPYRE_ALLOC_MAX_WAIT``); else the
        capacity is 110 GiB and ``gc`` is ``GcOptions(young_first=True)``.

    Raises
    ------
    RuntimeError
        If the device is in use already, or the host does not have so much address space.
    ValueError, TypeError, OverflowError
        For a value that is not allowed, and names the variable if it comes from the environment.
    """
    global _configured
    with _lock:
        if _in_use is not None:
            raise RuntimeError(
                "the spyre device is in use: configure it before its first tensor "
                f"(its allocator is {_in_use!r})"
            )
        if isinstance(options.get("device"), spyre_alloc.OffsetDevice):
            raise ValueError("device is an OffsetDevice; tensors need memory behind the addresses")
        from_environment, texts = _from_environment(options)
        settings = {**_DEFAULTS, **from_environment, **options}
        if "device" in options and "capacity" not in options:
            del settings["capacity"]
        try:
            _configured = _make(settings)
        except (ValueError, OverflowError, RuntimeError) as error:
            if not texts:
                raise
            raise type(error)(f"{error} (environment: {', '.join(texts)})") from None


def allocator():
    """The allocator in use; makes it if it is not made yet.

    Raises
    ------
    RuntimeError
        In a forked child of a process that had used the device.
    """
    global _configured, _in_use
    if _torch.is_in_bad_fork():
        raise RuntimeError(
            "Cannot re-initialize spyre in forked subprocess. To use spyre with multiprocessing, "
            "you must use the 'spawn' start method"
        )
    if _in_use is None:
        with _lock:
            if _in_use is None:
                if _configured is None:
                    configure()
                for callback in _early_callbacks:
                    callback._register_with(_configured)
                _early_callbacks.clear()
                _torch.use(_configured._capsule())
                atexit.register(_close)
                _in_use, _configured = _configured, None
    return _in_use


def _close():
    # Daemon threads may be in PyTorch still; those that it made for itself are not of `threading`.
    here = threading.current_thread()
    _torch.close(
        [
            thread.ident
            for thread in threading.enumerate()
            if thread is not here and not isinstance(thread, threading._DummyThread)
        ]
    )


def is_initialized():
    """Whether the allocator is made and in use."""
    return _in_use is not None and not _torch.is_in_bad_fork()


def register_memory_pressure_callback(fn, priority=0):
    """Have ``fn`` called when memory is short, before a request fails.

    Parameters
    ----------
    fn : callable
        Called with a :class:`spyre_alloc.PressureEvent`, on the requesting thread, which may be one
        of PyTorch's own.
    priority : int
        Low ones run first; the garbage collector is at 1000.

    Returns
    -------
    PressureCallback
        Its ``unregister()`` ends it.
    """
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {type(fn).__name__}")
    callback = PressureCallback(fn, priority)
    with _lock:
        if _in_use is not None:
            callback._register_with(_in_use)
        else:
            _early_callbacks.append(callback)
    return callback


def device_index(device):
    """0 for what names the device or the current one.

    Raises
    ------
    RuntimeError
        If there is no such device.
    ValueError
        If it is a device of another type.
    """
    if device is None:
        return 0
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type != "spyre":
            raise ValueError(f"expected a spyre device, not {device}")
        device = device.index if device.index is not None else 0
    if device != 0:
        raise RuntimeError(
            f"invalid device ordinal: there is 1 spyre device, number 0, and not {device}"
        )
    return 0
