# SPDX-License-Identifier: Apache-2.0
"""A request that finds another thread collecting waits for it, and then collects."""

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
    Thing,
    eventually,
    failure,
    fill,
    litter,
    pressure,
    reached,
    run_python,
    small,
)

pytestmark = pytest.mark.usefixtures("manual_gc")


class Collecting:
    """Another thread, kept inside a collection until `let_go()`."""

    def __init__(self, in_the_finalizer=lambda: None):
        self._inside = threading.Event()
        self._open = threading.Event()

        class Blocks:
            def __del__(thing):
                self._inside.set()
                self._open.wait(DEADLINE)
                self.value = in_the_finalizer()

        def collect():
            thing = Blocks()
            thing.me = thing
            del thing
            gc.collect()

        self._task = Task(collect)
        reached(self._inside, "the collection")

    def let_go(self):
        self._open.set()

    def finish(self):
        self.let_go()
        self._task.result()
        return self.value


def reclaiming(alloc):
    return lambda: pressure(alloc, "callbacks") > 0


def test_a_request_succeeds_after_another_threads_collection(strategy):  # case 31
    options = spyre_alloc.GcOptions(patience=DEADLINE)
    alloc = small(strategy, max_wait=DEADLINE, gc=options)
    other = Collecting()
    litter(alloc, 4)
    assert gc.collect() == 0, "a collection beside a running one does nothing"
    asking = Task(alloc.allocate, BLOCK)
    eventually(reclaiming(alloc), "the request reclaims")
    assert asking.is_alive()
    other.finish()
    assert asking.result().nbytes == BLOCK
    names = ("events", "collections", "collections_skipped", "out_of_memory")
    assert pressure(alloc, *names) == (1, 1, 0, 0)


def test_many_requests_succeed_after_another_threads_collection(strategy):
    options = spyre_alloc.GcOptions(patience=DEADLINE)
    alloc = small(strategy, max_wait=DEADLINE, gc=options)
    other = Collecting()
    litter(alloc, 4)
    asking = [Task(alloc.allocate, BLOCK) for _ in range(4)]
    eventually(lambda: pressure(alloc, "waits") == 3, "all others wait for the first")
    other.finish()
    buffers = [task.result() for task in asking]
    assert len({buffer.address for buffer in buffers}) == 4
    assert pressure(alloc, "out_of_memory") == 0
    assert pressure(alloc, "reclaims") <= 2


def test_a_native_thread_waits_for_a_collection_as_well(strategy):
    options = spyre_alloc.GcOptions(patience=DEADLINE)
    alloc = small(strategy, max_wait=DEADLINE, gc=options)
    other = Collecting()
    litter(alloc, 4)
    worker = spyre_alloc.NativeWorker(alloc, BLOCK, iterations=3)
    eventually(reclaiming(alloc), "the worker reclaims")
    other.finish()
    worker.join()
    assert (worker.allocations, worker.out_of_memory) == (3, 0)


def test_a_collection_without_end_is_waited_for_with_patience_only(strategy):
    options = spyre_alloc.GcOptions(patience=0.05)
    alloc = small(strategy, max_wait=0.0, gc=options)
    other = Collecting()
    litter(alloc, 4)
    began = time.monotonic()
    error = failure(alloc.allocate, BLOCK)
    assert 0.05 <= time.monotonic() - began < 2 * SLOWNESS
    assert "another thread" in str(error)
    assert pressure(alloc, "collections", "collections_skipped") == (0, 1)
    other.finish()
    alloc.allocate(BLOCK)


def test_a_finalizer_is_served_while_another_thread_waits_for_its_collection(strategy):
    options = spyre_alloc.GcOptions(patience=DEADLINE)
    alloc = small(strategy, max_wait=DEADLINE, gc=options)
    fits = alloc.allocate(BLOCK // 2)
    kept = fill(alloc)

    def in_the_finalizer():
        began = time.monotonic()
        piece = alloc.allocate(BLOCK // 2)
        return piece, time.monotonic() - began

    other = Collecting(in_the_finalizer)
    asking = Task(alloc.allocate, BLOCK)
    eventually(reclaiming(alloc), "the request reclaims")
    piece, took = other.finish()
    assert piece.nbytes == BLOCK // 2
    assert took < DEADLINE / 3, "it waited for a thread that waited for it"
    kept.pop()
    if strategy == "hold-mutex":
        asking.wait()
    else:
        assert asking.result().nbytes == BLOCK
    assert fits.nbytes == BLOCK // 2


def test_a_finalizer_fails_at_once_while_another_thread_waits_for_its_collection(strategy):
    options = spyre_alloc.GcOptions(patience=DEADLINE)
    alloc = small(strategy, max_wait=DEADLINE, gc=options)
    litter(alloc, 4)
    gc.collect()
    kept = fill(alloc)

    def in_the_finalizer():
        began = time.monotonic()
        return failure(alloc.allocate, BLOCK).reason, time.monotonic() - began

    other = Collecting(in_the_finalizer)
    asking = Task(alloc.allocate, BLOCK, None, None, None, None, 0.0)
    eventually(reclaiming(alloc), "the request reclaims")
    reason, took = other.finish()
    assert reason == "inside-finalizer"
    assert took < DEADLINE / 3, "it waited for a thread that waited for it"
    asking.wait()
    assert asking.error.reason in ("exhausted", "timed-out")
    assert len(kept) == 4


def test_stopping_a_native_thread_that_waits_for_a_collection_is_prompt(strategy):
    options = spyre_alloc.GcOptions(patience=DEADLINE)
    alloc = small(strategy, max_wait=DEADLINE, gc=options)
    other = Collecting()
    litter(alloc, 4)
    worker = spyre_alloc.NativeWorker(alloc, BLOCK)
    eventually(reclaiming(alloc), "the worker reclaims")
    began = time.monotonic()
    worker.stop()
    assert time.monotonic() - began < DEADLINE / 3
    other.finish()
    alloc.allocate(BLOCK)


def test_control_c_ends_the_wait_for_another_threads_collection(strategy):
    program = """
import os, signal, sys
import gc
from support import *
from test_gc_threads import Collecting, reclaiming
gc.disable()
options = spyre_alloc.GcOptions(patience=600.0)
alloc = small(sys.argv[1], max_wait=600.0, gc=options)
other = Collecting()
litter(alloc, 4)
def interrupt():
    eventually(reclaiming(alloc), "the request reclaims")
    os.kill(os.getpid(), signal.SIGINT)
task = Task(interrupt)
began = time.monotonic()
try:
    alloc.allocate(BLOCK)
except KeyboardInterrupt:
    assert time.monotonic() - began < DEADLINE / 3
    other.finish()
    alloc.allocate(BLOCK)
    print("interrupted")
"""
    done = run_python(program, strategy)
    assert (done.returncode, done.stdout.strip()) == (0, "interrupted"), done.stderr


def test_collections_of_both_kinds_do_not_disturb_each_other(strategy):
    alloc = small(strategy, max_wait=DEADLINE)
    stop = threading.Event()

    def collect():
        while not stop.is_set():
            gc.collect()

    def churn():
        for _ in range(200):
            thing = Thing(buffer=alloc.allocate(BLOCK))
            thing.me = thing

    collectors = [Task(collect), Task(collect)]
    churners = [Task(churn), Task(churn)]
    for task in churners:
        task.result()
    stop.set()
    for task in collectors:
        task.result()
    assert pressure(alloc, "events") > 0
    assert pressure(alloc, "out_of_memory") == 0
