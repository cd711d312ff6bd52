# SPDX-License-Identifier: Apache-2.0
"""Streams and events of a device that is synchronous: when an operator returns, its work is done. So
there is one stream, always idle, and an event is the moment at which it was recorded."""

import torch

from .configuration import device_index

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "set_stream",
    "stream",
    "synchronize",
]


class Stream(torch.Stream):
    """The stream of the device, however often it is made. ``priority`` means nothing."""

    def __new__(cls, device=None, priority=0):
        device_index(device)
        return super().__new__(cls, device="spyre:0", priority=priority)


class Event(torch.Event):
    """A moment. Its ``elapsed_time`` is in milliseconds, and always known."""

    def __new__(cls, enable_timing=True, blocking=False, interprocess=False):
        return super().__new__(cls, device="spyre:0", enable_timing=enable_timing)


class StreamContext:
    """What :func:`stream` returns."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return self.stream

    def __exit__(self, *_):
        return False


def stream(stream):
    """Context manager that chooses a stream; there is one only."""
    return StreamContext(stream)


def set_stream(stream):
    """Choose a stream; there is one only."""


def current_stream(device=None):
    """The stream of the device."""
    return Stream(device)


default_stream = current_stream


def synchronize(device=None):
    """Wait until all work is done: it is."""
    device_index(device)
