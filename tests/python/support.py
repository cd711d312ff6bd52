# SPDX-License-Identifier: Apache-2.0
"""What the tests share: small allocators, garbage, threads, and interpreters of their own."""

import os
import pathlib
import subprocess
import sys
import threading
import time

import spyre_alloc

BLOCK = 64 * 1024
STRATEGIES = ("hold-mutex", "release-condvar")

SANITIZERS = frozenset(filter(None, os.environ.get("FLEXALLOC_SANITIZE", "").split(",")))
#: How much slower than a plain build this one may be.
SLOWNESS = 6 if "thread" in SANITIZERS else 3 if SANITIZERS else 1
if "thread" in SANITIZERS:
    # The lock-order detector sees the GIL from now on, in child interpreters as well.
    import flexalloc_gil_model

    flexalloc_gil_model.install()

#: Longer than anything that works takes; a hang ends here, as a failure.
DEADLINE = 30.0 * SLOWNESS


def small(strategy, blocks=4, **options):
    """An allocator for so many buffers of BLOCK bytes, in one region."""
    return spyre_alloc.SpyreAllocator(strategy, capacity=blocks * BLOCK, regions=1, **options)


class Thing:
    """Holds whatever it is given as attributes."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def litter(alloc, count, nbytes=BLOCK):
    """Leaves `count` buffers that only the cyclic garbage collector can free."""
    for _ in range(count):
        thing = Thing(buffer=alloc.allocate(nbytes))
        thing.me = thing


def fill(alloc, nbytes=BLOCK):
    """Takes all that is free; the list keeps it."""
    kept = []
    while (buffer := alloc.try_allocate(nbytes)) is not None:
        kept.append(buffer)
    return kept


def used_bytes(alloc):
    return alloc.memory_stats()["allocated_bytes.all.current"]


def pressure(alloc, *names):
    """The named pressure statistics; a single one as itself."""
    stats = alloc.pressure_stats()
    return stats[names[0]] if len(names) == 1 else tuple(stats[name] for name in names)


def eventually(predicate, what):
    """Waits for what no event announces."""
    deadline = time.monotonic() + DEADLINE
    while not predicate():
        if time.monotonic() > deadline:
            raise TimeoutError(f"never happened: {what}")
        time.sleep(0.001)


def reached(event, what="event"):
    if not event.wait(DEADLINE):
        raise TimeoutError(f"never happened: {what}")


class Task(threading.Thread):
    """A thread that remembers what its function returned or raised."""

    def __init__(self, function, *arguments):
        super().__init__(daemon=True)
        self._function = function
        self._arguments = arguments
        self._value = None
        self.error = None
        self.start()

    def run(self):
        try:
            self._value = self._function(*self._arguments)
        except BaseException as error:  # noqa: BLE001 - handed to whoever asks for the result
            self.error = error

    def wait(self):
        self.join(DEADLINE)
        if self.is_alive():
            raise TimeoutError("a thread hangs")
        return self

    def result(self):
        self.wait()
        if self.error is not None:
            raise self.error
        return self._value


def failure(function, *arguments, **options):
    """The OutOfMemoryError that the call ends with."""
    try:
        function(*arguments, **options)
    except spyre_alloc.OutOfMemoryError as error:
        return error.with_traceback(None)
    raise AssertionError("the request was served")


def run_python(source, *arguments, timeout=60, options=(), **variables):
    """Runs a program in an interpreter of its own. It may import this module."""
    environment = dict(os.environ, **variables)
    here = str(pathlib.Path(__file__).parent)
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [here, environment.get("PYTHONPATH", "")])
    )
    environment.pop("PYTHONDEVMODE", None)
    return subprocess.run(
        [sys.executable, *options, "-c", source, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout * SLOWNESS,
    )
