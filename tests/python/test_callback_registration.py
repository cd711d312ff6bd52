# SPDX-License-Identifier: Apache-2.0
"""Registering and unregistering pressure callbacks, inside them, beside them, and after."""

import threading

import pytest
from support import BLOCK, DEADLINE, Task, eventually, failure, fill, pressure, reached, small

pytestmark = pytest.mark.usefixtures("manual_gc")


def test_unregistering_itself_inside_returns_at_once(strategy):  # case 98
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    calls = []

    def callback(event):
        calls.append(event)
        registration.unregister()
        assert not registration.registered

    registration = alloc.register_memory_pressure_callback(callback)
    assert registration.registered
    for _ in range(3):
        failure(alloc.allocate, BLOCK)
    assert len(calls) == 1
    assert len(kept) == 4


def test_unregistering_one_that_comes_later_keeps_it_from_running(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    calls = []
    later = alloc.register_memory_pressure_callback(calls.append, 2)
    alloc.register_memory_pressure_callback(lambda event: later.unregister(), 1)
    failure(alloc.allocate, BLOCK)
    assert not calls
    assert pressure(alloc, "callback_errors") == 0
    assert len(kept) == 4


def test_one_registered_inside_runs_at_the_next_event(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    calls = []

    def callback(event):
        registration.unregister()
        alloc.register_memory_pressure_callback(calls.append, 5)

    registration = alloc.register_memory_pressure_callback(callback)
    failure(alloc.allocate, BLOCK)
    failure(alloc.allocate, BLOCK)
    assert len(calls) == 1
    assert len(kept) == 4


class Running:
    """A callback that is kept inside until `let_go()`."""

    def __init__(self, alloc):
        self.inside = threading.Event()
        self.open = threading.Event()
        self.registration = alloc.register_memory_pressure_callback(self)

    def __call__(self, event):
        self.inside.set()
        reached(self.open)


@pytest.mark.parametrize("unregistering", [1, 3])
def test_unregistering_from_other_threads_waits_until_it_has_ended(strategy, unregistering):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    running = Running(alloc)
    asking = Task(failure, alloc.allocate, BLOCK)
    reached(running.inside)
    began = threading.Barrier(unregistering + 1)
    ended = []

    def unregister():
        began.wait(DEADLINE)
        running.registration.unregister()
        ended.append(running.open.is_set())

    tasks = [Task(unregister) for _ in range(unregistering)]
    began.wait(DEADLINE)
    eventually(lambda: not running.registration.registered, "one of them is inside unregister()")
    for task in tasks:
        task.join(0.05)
    assert not ended
    running.open.set()
    for task in tasks:
        task.result()
    assert ended == [True] * unregistering
    asking.result()
    assert len(kept) == 4


def test_unregistering_twice_is_harmless(strategy):
    alloc = small(strategy)
    registration = alloc.register_memory_pressure_callback(print)
    registration.unregister()
    registration.unregister()
    assert not registration.registered


def test_dropping_the_registration_keeps_the_callback(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    calls = []
    alloc.register_memory_pressure_callback(calls.append)
    failure(alloc.allocate, BLOCK)
    assert len(calls) == 1
    assert len(kept) == 4


def test_a_registration_outlives_the_allocator(strategy):
    alloc = small(strategy)
    registration = alloc.register_memory_pressure_callback(print)
    del alloc
    assert not registration.registered
    registration.unregister()


def test_registering_and_unregistering_in_a_loop_beside_running_callbacks(strategy):  # case 97
    alloc = small(strategy, blocks=2, max_wait=0.0, gc=False)
    kept = fill(alloc)
    calls = []
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            failure(alloc.allocate, BLOCK)

    tasks = [Task(ask) for _ in range(2)]
    for round_ in range(300):
        registration = alloc.register_memory_pressure_callback(calls.append, round_ % 3)
        if round_ % 2:
            eventually(lambda count=len(calls): len(calls) > count, "it runs")
        registration.unregister()
        count = len(calls)
        assert not registration.registered
        assert len(calls) == count
    stop.set()
    for task in tasks:
        task.result()
    alloc.check_invariants()
    assert pressure(alloc, "callbacks") >= 150
    assert len(kept) == 2
