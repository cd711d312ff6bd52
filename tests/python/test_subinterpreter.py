# SPDX-License-Identifier: Apache-2.0
"""In a sub-interpreter the import is refused, in words; the main interpreter is not disturbed."""

import pytest
from support import run_python

PROGRAM = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import sys

def run(code):
    interpreter = interpreters.create()
    try:
        failure = interpreters.run_string(interpreter, code)
    except Exception as error:
        failure = error
    interpreters.destroy(interpreter)
    return failure

strategy, order = sys.argv[1:]
if order == "main-first":
    from support import *
failure = run("import spyre_alloc")
text = str(failure)
assert "ImportError" in text and "main interpreter only" in text, text
assert run("try:\\n import spyre_alloc\\nexcept ImportError: pass\\nelse: 1/0") is None
from support import *
import gc
gc.disable()
alloc = small(strategy, max_wait=0.0)
litter(alloc, 4)
kept = [alloc.allocate(BLOCK)]
kept += fill(alloc)
from support import failure as out_of_memory
assert out_of_memory(alloc.allocate, BLOCK).reason == "exhausted"
worker = spyre_alloc.NativeWorker(alloc, BLOCK, iterations=2)
worker.join()
tasks = [Task(out_of_memory, alloc.allocate, BLOCK) for _ in range(4)]
for task in tasks:
    task.result()
kept.clear()
alloc.allocate(BLOCK)
alloc.check_invariants()
print("undisturbed")
"""


@pytest.mark.parametrize("order", ["main-first", "sub-first"])
def test_the_import_is_refused_and_the_main_interpreter_works_on(strategy, order):  # case 53
    done = run_python(PROGRAM, strategy, order)
    assert (done.returncode, done.stdout.strip()) == (0, "undisturbed"), done.stderr
