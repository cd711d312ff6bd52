# SPDX-License-Identifier: Apache-2.0
"""Buffers, allocators and finalizers that are still there when the interpreter ends."""

import pytest
from support import run_python
from test_exit import EXIT_CODE, PREAMBLE

REASON = "interpreter-finalizing"


def output(source, strategy, before_import=""):
    program = before_import + PREAMBLE + source + f"\nsys.exit({EXIT_CODE})\n"
    done = run_python(program, strategy, options=["-X", "dev"])
    assert done.returncode == EXIT_CODE, done.stderr
    assert "flexalloc:" not in done.stderr
    return done.stdout.split()


def test_live_buffers_and_cycles_need_not_be_freed(strategy):
    source = """
alloc = small(strategy)
kept = [alloc.allocate(BLOCK)]
litter(alloc, 2)
view = memoryview(kept[0])
alloc.me = alloc
alloc.register_memory_pressure_callback(lambda event: (alloc, kept))
"""
    assert output(source, strategy) == []


def test_buffers_may_live_in_builtins(strategy):
    source = """
builtins.buffer = small(strategy).allocate(BLOCK)
builtins.buffer.me = builtins.buffer
builtins.alloc = small(strategy)
builtins.kept = fill(builtins.alloc)
"""
    assert output(source, strategy) == []


ALLOCATES = """
class Allocates:
    '''Allocates under pressure when it is dropped, with nothing but what it holds.'''
    def __init__(self, alloc, nbytes=BLOCK):
        self.__dict__.update(alloc=alloc, nbytes=nbytes, error=spyre_alloc.OutOfMemoryError,
                             write=os.write)
    def __del__(self):
        try:
            self.alloc.allocate(self.nbytes)
            self.write(1, b"served ")
        except self.error as error:
            self.write(1, error.reason.encode() + b" ")
"""


@pytest.mark.parametrize("place", ["thing", "builtins.thing", "sys.thing", "spyre_alloc.thing"])
def test_a_finalizer_at_module_teardown_gets_a_clean_failure(strategy, place):  # case 52
    source = ALLOCATES + f"""
alloc = small(strategy, max_wait=3600.0)
kept = fill(alloc)
sys.kept = kept
{place} = Allocates(alloc)
"""
    assert output(source, strategy) == [REASON]


def test_a_finalizer_at_module_teardown_is_served_from_what_is_free(strategy):
    source = ALLOCATES + """
thing = Allocates(small(strategy))
"""
    assert output(source, strategy) == ["served"]


ATEXIT = """
import atexit
def leave(number):
    global kept
    try:
        alloc.allocate(BLOCK)
        print("served", number)
        kept = fill(alloc)
    except spyre_alloc.OutOfMemoryError as error:
        print(error.reason, number)
"""


def test_exit_functions_registered_after_the_import_work_as_ever(strategy):
    source = ATEXIT + """
alloc = small(strategy)
litter(alloc, 4)
atexit.register(leave, 1)
"""
    assert output(source, strategy) == ["served", "1"]


def test_exit_functions_registered_before_the_import_get_a_clean_failure(strategy):
    source = """
alloc = small(strategy, max_wait=3600.0)
litter(alloc, 4)
"""
    before = ATEXIT + "atexit.register(leave, 2)\n"
    assert output(source, strategy, before) == [REASON, "2"]


def test_an_allocator_is_refused_once_the_end_has_begun(strategy):
    before = """
import atexit
def leave():
    try:
        small(strategy)
    except RuntimeError as error:
        print("shutting down" in str(error))
atexit.register(leave)
"""
    assert output("", strategy, before) == ["True"]


def test_a_system_exit_on_the_way_ends_the_program_with_its_code(strategy):
    source = """
alloc = small(strategy)
kept = fill(alloc)
def callback(event):
    sys.exit(7)
alloc.register_memory_pressure_callback(callback)
alloc.allocate(BLOCK)
print("not reached")
"""
    assert output(source, strategy) == []


def test_an_uncaught_out_of_memory_error_is_shown_and_ends_the_program(strategy):
    done = run_python(
        PREAMBLE + "alloc = small(strategy)\nkept = fill(alloc)\nalloc.allocate(BLOCK)\n", strategy
    )
    assert done.returncode == 1
    assert "spyre_alloc.OutOfMemoryError: out of device memory (exhausted)" in done.stderr
