# SPDX-License-Identifier: Apache-2.0
"""The interpreter's end: whatever is alive and whatever threads are doing, the program ends with its
own exit code and without a word."""

import pytest
from support import run_python

EXIT_CODE = 7

PREAMBLE = """
import builtins, gc, sys, threading
import torch
from support import Task, eventually, reached
from torch_support import BLOCK, Node, block, fill, litter, pressure, small

def daemons(work, count=4):
    '''Threads that the program does not wait for; returns when each has gone round some times.'''
    rounds = [0] * count
    def run(number):
        while True:
            work()
            rounds[number] += 1
    tasks = [Task(run, number) for number in range(count)]
    eventually(lambda: min(rounds) > 3, "they run")
    return tasks
"""

ENDINGS = {
    "unused": "",
    "live-tensors": "small(); kept = fill(); builtins.kept = block",
    "tensors-in-builtins": "small(); builtins.kept = fill()",
    "cycles": "small(); gc.disable(); litter(8)",
    "graph": """
x = torch.ones(100, device="spyre", requires_grad=True)
y = (x * 2).exp()
Node(y)
builtins.y = y
""",
    "finalizer-that-allocates": """
small()
block()  # PyTorch imports what it needs for that; later it cannot
class Late:
    def __del__(self, block=block):
        block(); block()
builtins.late = Late()
""",
    "finalizer-that-runs-out-of-memory": """
small()
class Late:
    def __init__(self): self.kept = fill()
    def __del__(self, block=block, Error=torch.OutOfMemoryError):
        try:
            block()
        except Error:
            pass
builtins.late = Late()
""",
    "thread-local": """
small()
local = threading.local()
local.kept = block()
Task(setattr, local, "kept", block()).result()
""",
    "callback-registered": """
small()
torch.spyre.register_memory_pressure_callback(lambda event: None)
kept = fill()
""",
    "configured-and-unused": "torch.spyre.memory.configure(capacity='1MiB')",
    "daemons-make-and-drop": "small(64); daemons(block)",
    "daemons-make-with-the-gil": """
small(64)
daemons(lambda: torch.UntypedStorage(BLOCK, device="spyre"))
""",
    "daemons-compute": """
daemons(lambda: torch.randn(100, 100, device="spyre").mm(torch.ones(100, 100, device="spyre")).sum())
""",
    "daemons-collect-under-pressure": """
small(16, max_wait=60.0)
daemons(lambda: Node(block()))
""",
    "daemons-copy-to-the-cpu": "daemons(lambda: torch.ones(1000, device='spyre').cpu())",
    "daemons-train": """
def train():
    x = torch.ones(50, 50, device="spyre", requires_grad=True)
    (x @ x).tanh().sum().backward()
daemons(train)
""",
    "trained": """
x = torch.ones(50, 50, device="spyre", requires_grad=True)
(x @ x).tanh().sum().backward()
""",
    "daemon-waits-for-memory": """
small(4, max_wait=3600.0, gc=False)
kept = fill()
inside, never = threading.Event(), threading.Event()
def callback(event):
    inside.set()
    never.wait()
torch.spyre.register_memory_pressure_callback(callback)
tasks = [Task(block) for _ in range(3)]
reached(inside)
""",
    "daemon-idle": """
small()
go = threading.Event()
def idle():
    kept = block()
    go.set()
    threading.Event().wait()
Task(idle)
reached(go)
""",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_program_ends_with_its_own_exit_code(ending):
    source = PREAMBLE + ENDINGS[ending] + f"\nsys.exit({EXIT_CODE})"
    done = run_python(source, timeout=60)
    assert (done.returncode, done.stderr) == (EXIT_CODE, "")


def test_a_thread_that_pytorch_made_for_itself_is_not_waited_for():
    done = run_python("""
import atexit, sys, time
import torch
atexit.register(lambda: print(time.monotonic() - began < 0.5))  # the last to run
x = torch.ones(5, device="spyre", requires_grad=True)
x.exp().sum().backward()  # on a thread of PyTorch's, which stays
atexit.register(lambda: globals().update(began=time.monotonic()))  # the first
""")
    assert (done.stdout, done.stderr) == ("True\n", "")
