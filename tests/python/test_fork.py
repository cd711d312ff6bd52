# SPDX-License-Identifier: Apache-2.0
"""A forked child allocates or gets a clear error; it never hangs, and the parent is unharmed."""

from support import run_python

PROGRAM = """
import os, signal, sys, threading
from support import *
import workloads

SERVED, FAILED, OTHER = 10, 11, 12
strategy, situation = sys.argv[1:]
alloc = small(strategy, blocks=4, max_wait=0.5)
stop = threading.Event()
tasks, worker, kept = [], None, []
if situation == "in-a-callback":
    inside, kept = threading.Event(), fill(alloc)
    parent = os.getpid()
    def callback(event):
        if os.getpid() == parent:
            inside.set()
            reached(stop)
        kept.clear()
    alloc.register_memory_pressure_callback(callback)
    tasks = [Task(alloc.allocate, BLOCK)]
    reached(inside)
elif situation == "at-work":
    worker = spyre_alloc.NativeWorker(alloc, BLOCK, live=2)
    tasks = [Task(workloads.churn_garbage, alloc, stop.is_set) for _ in range(2)]
    eventually(lambda: pressure(alloc, "events") > 5, "they run")

endings = []
for _ in range(20 if situation == "at-work" else 3):
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        code = OTHER
        try:
            alloc.allocate(BLOCK)
            code = SERVED
        except (MemoryError, RuntimeError) as error:
            code = FAILED
        finally:
            os._exit(code)
    endings.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if endings[-1] < 0:
        break  # it hung
print(sorted(set(endings)))

stop.set()
for task in tasks:
    task.result()
if worker is not None:
    worker.stop()
kept.clear()
alloc.check_invariants()
alloc.allocate(BLOCK)
"""
SERVED, FAILED = 10, 11


def endings(strategy, situation):
    done = run_python(PROGRAM, strategy, situation)
    assert done.returncode == 0, done.stderr
    return set(map(int, done.stdout.strip(" []\n").split(",")))


def test_a_child_of_an_idle_parent_allocates(strategy):
    assert endings(strategy, "idle") == {SERVED}


def test_a_child_forked_during_a_callback_of_another_thread_reclaims_itself(strategy):  # cases 55, 57
    assert endings(strategy, "in-a-callback") == {SERVED}


def test_a_child_forked_while_threads_allocate_gets_an_answer(strategy):  # case 55
    assert endings(strategy, "at-work") <= {SERVED, FAILED}
