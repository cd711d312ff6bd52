# SPDX-License-Identifier: Apache-2.0
"""The interpreter's end: whatever threads are doing, the program ends with its own exit code."""

import pytest
from support import SLOWNESS, run_python

EXIT_CODE = 7

PREAMBLE = """
import builtins, gc, os, sys, threading, time
import spyre_alloc
from support import *
import workloads

strategy = sys.argv[1]
forever = lambda: False

class Slow:
    '''Gives daemon threads time to run into the interpreter while it is being taken down.'''
    def __del__(self, sleep=time.sleep):
        sleep(0.02)

builtins.slow = Slow()

def daemons(function, *arguments, count=4):
    return [Task(function, *arguments) for _ in range(count)]
"""

# What the threads are doing when the main thread leaves.
ACTIVITIES = {
    "on-the-fast-path": """
alloc = small(strategy, blocks=64)
def work():
    while True:
        alloc.allocate(BLOCK)
daemons(work)
eventually(lambda: alloc.memory_stats()["allocation.all.allocated"] > 100, "they run")
""",
    "collecting": """
alloc = small(strategy, blocks=16, max_wait=3600.0)
gc.disable()
daemons(workloads.churn_garbage, alloc, forever)
eventually(lambda: pressure(alloc, "collections") > 20, "they collect")
""",
    "waiting": """
alloc = small(strategy, blocks=4, max_wait=3600.0, gc=False)
kept = fill(alloc)
inside = threading.Event()
def callback(event):
    inside.set()
    threading.Event().wait()
alloc.register_memory_pressure_callback(callback)
daemons(alloc.allocate, BLOCK)
reached(inside)
eventually(lambda: pressure(alloc, "waits") == 3, "they wait")
""",
    "in-a-callback-that-sleeps": """
alloc = small(strategy, blocks=4, max_wait=3600.0, gc=False)
kept = fill(alloc)
def callback(event):
    time.sleep(0.01)
alloc.register_memory_pressure_callback(callback)
def work():
    while True:
        failure(alloc.allocate, BLOCK, max_wait=0.0)
daemons(work)
eventually(lambda: pressure(alloc, "callbacks") > 4, "they are called")
""",
    "re-attaching": """
sys.setswitchinterval(1e-6)
alloc = small(strategy, blocks=4, max_wait=3600.0, gc=False)
kept = fill(alloc)
def work():
    while True:
        failure(alloc.allocate, BLOCK, max_wait=0.0)
        alloc.try_allocate(BLOCK)
        alloc.check_invariants()
daemons(work, count=8)
eventually(lambda: pressure(alloc, "events") > 20, "they run")
""",
    "in-a-finalizer": """
alloc = small(strategy, blocks=4, max_wait=3600.0)
inside = threading.Event()
class Sleeps:
    def __del__(self):
        inside.set()
        while True:
            time.sleep(0.0005)
def work():
    thing = Sleeps()
    thing.me = thing
    del thing
    litter(alloc, 5)
daemons(work, count=2)
reached(inside)
""",
    "in-an-argument": """
alloc = small(strategy, blocks=4)
inside = threading.Event()
class Sleeps:
    def __index__(self):
        inside.set()
        while True:
            time.sleep(0.0005)
for function in (alloc.allocate, alloc.try_allocate, spyre_alloc.SimulatedDevice):
    inside.clear()
    Task(function, Sleeps())
    reached(inside)
""",
    "dropping-a-callback": """
inside = threading.Event()
class Sleeps:
    def __call__(self, event): pass
    def __del__(self):
        inside.set()
        while True:
            time.sleep(0.0005)
def unregister():
    alloc = small(strategy)
    alloc.register_memory_pressure_callback(Sleeps()).unregister()
def drop():
    small(strategy).register_memory_pressure_callback(Sleeps())
for function in (unregister, drop):
    inside.clear()
    Task(function)
    reached(inside)
""",
    "on-native-threads": """
alloc = small(strategy, blocks=4, max_wait=3600.0)
workers = [spyre_alloc.NativeWorker(alloc, BLOCK, live=2) for _ in range(3)]
def callback(event):
    pass
alloc.register_memory_pressure_callback(callback)
daemons(workloads.churn_garbage, alloc, forever, count=2)
eventually(lambda: pressure(alloc, "events") > 20, "they run")
""",
    "on-forgotten-native-threads": """
alloc = small(strategy, blocks=4, max_wait=3600.0, gc=False)
kept = fill(alloc)
alloc.register_memory_pressure_callback(lambda event: time.sleep(0.001))
builtins.workers = [spyre_alloc.NativeWorker(alloc, BLOCK) for _ in range(3)]
eventually(lambda: pressure(alloc, "events") > 2, "they run")
""",
}


def ends_well(source, strategy, runs=1):
    for _ in range(runs):
        done = run_python(PREAMBLE + source + f"\nsys.exit({EXIT_CODE})\n", strategy)
        if done.returncode != EXIT_CODE or "flexalloc:" in done.stderr:
            return f"ended with {done.returncode}: {done.stdout}{done.stderr}"
    return True


@pytest.mark.parametrize("activity", ACTIVITIES)
def test_threads_do_not_disturb_the_end(strategy, activity):  # cases 44, 45, 46
    runs = 10 if SLOWNESS == 1 else 1
    assert ends_well(ACTIVITIES[activity], strategy, runs) is True


def test_thirty_runs_of_thirty_end_well_with_threads_under_pressure(strategy):
    source = """
sys.setswitchinterval(1e-5)
alloc = small(strategy, blocks=16, max_wait=3600.0)
alloc.register_memory_pressure_callback(lambda event: None)
daemons(workloads.churn_garbage, alloc, forever)
worker = spyre_alloc.NativeWorker(alloc, BLOCK)
eventually(lambda: pressure(alloc, "events") > 5, "they are under pressure")
"""
    assert ends_well(source, strategy, runs=30 if SLOWNESS == 1 else 5) is True
