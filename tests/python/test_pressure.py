# SPDX-License-Identifier: Apache-2.0
"""Many threads under pressure: who reclaims, and that nobody fails who need not."""

import ast
import os
import threading

import pytest
import spyre_alloc
import workloads
from support import (
    BLOCK,
    DEADLINE,
    SLOWNESS,
    Task,
    eventually,
    fill,
    litter,
    pressure,
    run_python,
    small,
    used_bytes,
)

EVENTS = 1500 if SLOWNESS == 1 else 300


class Burst:
    """Eight requests that have all failed before the first reclaim is let go on."""

    def __init__(self, alloc, during_the_first_reclaim):
        self.reclaims = 0
        self._alloc = alloc
        self._action = during_the_first_reclaim
        alloc.register_memory_pressure_callback(self)
        barrier = threading.Barrier(8)

        def ask():
            barrier.wait(DEADLINE)
            return alloc.allocate(BLOCK)

        self.tasks = [Task(ask) for _ in range(8)]
        for task in self.tasks:
            task.wait()

    def __call__(self, event):
        self.reclaims += 1
        if self.reclaims == 1:
            eventually(lambda: pressure(self._alloc, "waits") == 7, "the others wait")
            self._action()

    def served(self):
        return [task.error for task in self.tasks].count(None)


def test_a_burst_for_which_all_is_freed_reclaims_once(strategy, manual_gc):  # case 74
    alloc = small(strategy, blocks=8, max_wait=DEADLINE)
    kept = fill(alloc)
    burst = Burst(alloc, kept.clear)
    assert burst.served() == 8
    assert burst.reclaims == 1
    stats = alloc.pressure_stats()
    assert stats["reclaims"] == 1
    assert stats["coalesced"] == stats["events"] - 1
    assert used_bytes(alloc) == 8 * BLOCK


def test_a_burst_for_which_nothing_is_freed_reclaims_twice_at_most(strategy, manual_gc):
    alloc = small(strategy, blocks=8, max_wait=1.5 * SLOWNESS)
    kept = fill(alloc)
    burst = Burst(alloc, lambda: None)
    assert burst.served() == 0
    assert 1 <= burst.reclaims <= 2
    assert pressure(alloc, "events", "out_of_memory") == (8, 8)
    assert pressure(alloc, "reclaims") == burst.reclaims
    assert {task.error.reason for task in burst.tasks} == {"exhausted"}
    assert len(kept) == 8


def test_a_burst_over_cyclic_garbage_collects_twice_at_most(strategy, manual_gc):
    alloc = small(strategy, blocks=8, max_wait=DEADLINE)
    litter(alloc, 8)
    burst = Burst(alloc, lambda: None)
    assert burst.served() == 8
    assert 1 <= pressure(alloc, "collections") <= 2
    assert pressure(alloc, "out_of_memory") == 0


def test_threads_whose_live_data_fits_never_fail(strategy, manual_gc):
    alloc = small(strategy, blocks=16, max_wait=DEADLINE)
    assert workloads.run(alloc, EVENTS, garbage=4) == 0
    assert pressure(alloc, "events") >= EVENTS
    assert pressure(alloc, "out_of_memory", "timeouts") == (0, 0)
    alloc.check_invariants()


def test_nor_do_they_with_automatic_collections(strategy):
    alloc = small(strategy, blocks=16, max_wait=DEADLINE)
    assert workloads.run(alloc, EVENTS // 30, garbage=4) == 0
    assert pressure(alloc, "events") >= EVENTS // 30
    assert pressure(alloc, "out_of_memory", "timeouts") == (0, 0)


def test_nor_do_steady_and_native_threads_beside_them(strategy, manual_gc):
    alloc = small(strategy, blocks=16, max_wait=DEADLINE)
    assert workloads.run(alloc, EVENTS, garbage=2, steady=2, native=1) == 0
    assert pressure(alloc, "events") >= EVENTS
    assert pressure(alloc, "out_of_memory", "timeouts") == (0, 0)


@pytest.mark.parametrize("core", [[], [min(os.sched_getaffinity(0))]], ids=["any-core", "one-core"])
@pytest.mark.parametrize("interval", [5e-3, 1e-6])
def test_nor_however_threads_are_scheduled(strategy, interval, core):  # cases 13, 80
    program = "import sys, workloads; workloads.main(*sys.argv[1:])"
    done = run_python(program, strategy, EVENTS // 2, interval, *core)
    assert done.returncode == 0, done.stderr
    failures, rest = done.stdout.split(maxsplit=1)
    events, out_of_memory, timeouts, reclaims = ast.literal_eval(rest)
    assert events >= EVENTS // 2
    assert (int(failures), out_of_memory, timeouts) == (0, 0, 0)
    assert reclaims <= events


def test_two_requests_that_each_need_everything_finish_in_turn(manual_gc):  # case 61
    alloc = small("release-condvar", blocks=4, max_wait=DEADLINE)
    stop = threading.Event()
    served = [0, 0]

    def ask(mine):
        while not stop.is_set():
            alloc.allocate(4 * BLOCK)
            served[mine] += 1

    tasks = [Task(ask, 0), Task(ask, 1)]
    eventually(lambda: min(served) >= 50 and pressure(alloc, "waits") > 0, "both are served")
    stop.set()
    for task in tasks:
        task.result()
    assert used_bytes(alloc) == 0


def test_bystanders_make_progress_while_others_reclaim(manual_gc):  # case 81
    alloc = small("release-condvar", blocks=16, max_wait=0.0, overtake_limit=2**40)
    kept = [alloc.allocate(8 * BLOCK)]
    stop = threading.Event()
    served = []

    def bystander():
        while not stop.is_set():
            alloc.allocate(BLOCK)
            served.append(1)

    def callback(event):
        count = len(served)
        eventually(lambda: len(served) > count + 10, "a bystander is served")

    alloc.register_memory_pressure_callback(callback)
    task = Task(bystander)
    for _ in range(3):
        with pytest.raises(spyre_alloc.OutOfMemoryError):
            alloc.allocate(12 * BLOCK)
    stop.set()
    task.result()
    assert pressure(alloc, "reclaims") >= 3
    assert len(kept) == 1
