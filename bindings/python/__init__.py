# SPDX-License-Identifier: Apache-2.0
"""Device memory with a choice of what happens when it runs out.

A :class:`SpyreAllocator` carves buffers out of large regions of device memory. When none has room,
its strategy decides who reclaims, who waits, and who gets what comes back; by default Python's
cyclic garbage collector runs, since a buffer that only a reference cycle keeps alive is freed by
nothing else.

>>> import spyre_alloc
>>> alloc = spyre_alloc.SpyreAllocator("release-condvar", capacity="64MiB")
>>> with alloc.allocate("1MiB") as buffer:
...     memoryview(buffer)[:5] = b"hello"
"""


def _refuse_sub_interpreters():
    # An extension module of the old kind is copied into further interpreters without being asked.
    try:
        import _interpreters as interpreters  # 3.13 and newer
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            return

    def number(interpreter):
        return interpreter[0] if isinstance(interpreter, tuple) else interpreter

    if number(interpreters.get_current()) != number(interpreters.get_main()):
        raise ImportError(
            "spyre_alloc works in the main interpreter only, not in a sub-interpreter"
        )


_refuse_sub_interpreters()

from ._core import (  # noqa: E402
    Buffer,
    DeviceMemory,
    GcOptions,
    NativeWorker,
    OffsetDevice,
    OutOfMemoryError,
    PressureEvent,
    Registration,
    SimulatedDevice,
    SpyreAllocator,
    __version__,
)

__all__ = [
    "Buffer",
    "DeviceMemory",
    "GcOptions",
    "NativeWorker",
    "OffsetDevice",
    "OutOfMemoryError",
    "PressureEvent",
    "Registration",
    "SimulatedDevice",
    "SpyreAllocator",
    "__version__",
]
