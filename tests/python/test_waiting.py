# SPDX-License-Identifier: Apache-2.0
"""Every wait has a bound, and Ctrl-C ends it."""

import gc
import threading
import time

import pytest
import spyre_alloc
from support import (
    BLOCK,
    DEADLINE,
    SLOWNESS,
    Task,
    eventually,
    failure,
    fill,
    pressure,
    reached,
    run_python,
    small,
)

pytestmark = pytest.mark.usefixtures("manual_gc")


class Busy:
    """A request of another thread that stays inside its pressure callback until `end()`."""

    def __init__(self, alloc):
        inside, self._open = threading.Event(), threading.Event()
        calls = []

        def callback(event):
            calls.append(event)
            if len(calls) == 1:
                inside.set()
                reached(self._open)

        alloc.register_memory_pressure_callback(callback)
        self._task = Task(failure, alloc.allocate, 4 * BLOCK, None, None, None, None, 0.0)
        reached(inside)

    def end(self):
        self._open.set()
        return self._task.result()


def test_a_request_waits_at_most_max_wait(strategy):
    alloc = small(strategy, max_wait=0.1)
    kept = fill(alloc)
    busy = Busy(alloc)
    began = time.monotonic()
    error = failure(alloc.allocate, BLOCK)
    took = time.monotonic() - began
    assert 0.1 <= took < 3.0 * SLOWNESS
    assert error.reason == "timed-out"
    assert "max_wait" in str(error)
    assert error.waited_ms >= 100.0
    assert pressure(alloc, "waits", "timeouts") == (1, 1)
    assert alloc.pressure_stats()["wait_ns"] >= 100_000_000
    busy.end()
    assert len(kept) == 4


def test_a_call_may_wait_longer_or_shorter_than_the_allocator_says(strategy):
    alloc = small(strategy, max_wait=DEADLINE)
    kept = fill(alloc)
    busy = Busy(alloc)
    began = time.monotonic()
    assert failure(alloc.allocate, BLOCK, max_wait=0.05).reason == "timed-out"
    assert 0.05 <= time.monotonic() - began < DEADLINE / 3
    assert pressure(alloc, "timeouts") == 1
    busy.end()
    assert len(kept) == 4


def test_max_wait_zero_never_sleeps(strategy):
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)
    busy = Busy(alloc)
    error = failure(alloc.allocate, BLOCK)
    assert error.reason == "timed-out"
    assert error.waited_ms == 0.0
    assert pressure(alloc, "waits", "wait_ns") == (0, 0)
    busy.end()
    assert len(kept) == 4


def test_max_wait_zero_may_reclaim(strategy):
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)
    alloc.register_memory_pressure_callback(lambda event: kept.clear())
    alloc.allocate(BLOCK)
    assert pressure(alloc, "reclaims", "waits") == (1, 0)


def test_a_waiting_request_is_served_when_another_threads_reclaim_frees(strategy):
    alloc = small(strategy, max_wait=DEADLINE, gc=False)
    kept = fill(alloc)
    busy = Busy(alloc)
    asking = Task(alloc.allocate, BLOCK)
    eventually(lambda: pressure(alloc, "waits") == 1, "the request waits")
    kept.pop()
    if strategy == "hold-mutex":
        assert asking.is_alive(), "the allocator is closed until the event ends"
    busy.end()
    assert asking.result().nbytes == BLOCK
    assert pressure(alloc, "events") >= 1


def test_a_waiting_request_is_handed_what_another_thread_frees():
    alloc = small("release-condvar", max_wait=DEADLINE, gc=False)
    kept = fill(alloc)
    asking = Task(alloc.allocate, BLOCK)
    eventually(lambda: pressure(alloc, "waits") == 1, "the request waits")
    kept.pop().free()
    assert asking.result().nbytes == BLOCK
    assert pressure(alloc, "events", "handoffs") == (1, 1)


def test_waiting_requests_are_served_in_the_order_of_their_arrival():
    alloc = small("release-condvar", blocks=1, max_wait=DEADLINE, gc=False)
    kept = fill(alloc)
    served = []

    def ask(number):
        buffer = alloc.allocate(BLOCK)
        served.append(number)
        buffer.free()

    tasks = []
    for number in range(4):
        tasks.append(Task(ask, number))
        eventually(lambda: pressure(alloc, "waits") == len(tasks), "it waits")
    kept.clear()
    for task in tasks:
        task.result()
    assert served == [0, 1, 2, 3]
    assert pressure(alloc, "events") == 4


def test_the_allocator_may_be_dropped_while_a_native_thread_waits(strategy):  # case 63
    device = spyre_alloc.SimulatedDevice(4 * BLOCK)
    alloc = spyre_alloc.SpyreAllocator(
        strategy, device=device, regions=1, max_wait=3600.0, gc=False
    )
    kept = fill(alloc)
    busy = Busy(alloc)
    worker = spyre_alloc.NativeWorker(alloc, BLOCK)
    eventually(lambda: pressure(alloc, "waits") == 1, "the worker waits")
    busy.end()
    del alloc, busy
    gc.collect()
    assert device.bytes_in_use > 0
    worker.stop()
    del kept, worker
    gc.collect()  # the one before may have found the worker inside the callback, which then was alive
    eventually(lambda: device.bytes_in_use == 0, "the regions go back")


CONTROL_C = """
import os, signal, sys, time
from support import *
from test_waiting import Busy
alloc = small(sys.argv[1], max_wait=3600.0, gc=False)
kept = fill(alloc)
busy = Busy(alloc)
def interrupt():
    eventually(lambda: pressure(alloc, "waits") == 1, "the main thread waits")
    os.kill(os.getpid(), signal.SIGINT)
task = Task(interrupt)
began = time.monotonic()
try:
    alloc.allocate(BLOCK)
    print("served")
except KeyboardInterrupt:
    assert time.monotonic() - began < DEADLINE / 3
    task.result()
    busy.end()
    alloc.check_invariants()
    kept.clear()
    alloc.allocate(4 * BLOCK)
    print("interrupted")
"""


def test_control_c_ends_a_wait_and_the_allocator_stays_usable(strategy):
    done = run_python(CONTROL_C, strategy)
    assert (done.returncode, done.stdout.strip()) == (0, "interrupted"), done.stderr


SIGNAL = """
import os, signal, sys
from support import *
alloc = small("release-condvar", max_wait=3600.0, gc=False)
kept = fill(alloc)
signal.signal(signal.SIGUSR1, lambda *_: kept.pop().free())
def interrupt():
    eventually(lambda: pressure(alloc, "waits") == 1, "the main thread waits")
    os.kill(os.getpid(), signal.SIGUSR1)
task = Task(interrupt)
print(alloc.allocate(BLOCK).nbytes == BLOCK)
"""


def test_a_signal_handler_runs_during_a_wait_and_may_free():
    done = run_python(SIGNAL)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
