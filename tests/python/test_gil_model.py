# SPDX-License-Identifier: Apache-2.0
"""ThreadSanitizer's lock-order detector, told about the GIL, finds a planted inversion."""

import os

import pytest
from support import SANITIZERS, run_python

pytestmark = pytest.mark.skipif("thread" not in SANITIZERS, reason="needs ThreadSanitizer")

PREAMBLE = """
import sys
import flexalloc_rule_breaker as breaker
from support import *
strategy = sys.argv[1]
breaker.ignore_rules()
owner = small("hold-mutex", gc=False, max_wait=0.0)
other = small(strategy, gc=False, max_wait=0.0)
other.register_memory_pressure_callback(lambda event: None)
kept = fill(owner), fill(other)
"""
GIL_THEN_MUTEX = """
def wait_attached():
    try:
        breaker.wait_attached(owner._bare_capsule(), BLOCK)
    except MemoryError:
        pass
Task(wait_attached).result()
"""
MUTEX_THEN_GIL = """
breaker.allocate_under_the_mutex(owner._bare_capsule(), other._bare_capsule(), BLOCK)
Task(failure, owner.allocate, BLOCK).result()
"""
END = "\nprint('ended')\n"


def run(source, strategy):
    options = os.environ.get("TSAN_OPTIONS", "") + ":detect_deadlocks=1:halt_on_error=0:exitcode=66"
    done = run_python(PREAMBLE + source + END, strategy, TSAN_OPTIONS=options)
    assert "ended" in done.stdout, done.stderr  # no deadlock came of it
    return done


def test_an_inversion_that_does_not_deadlock_is_reported(strategy):
    done = run(GIL_THEN_MUTEX + MUTEX_THEN_GIL, strategy)
    assert "lock-order-inversion" in done.stderr
    assert done.returncode == 66


@pytest.mark.parametrize("half", [GIL_THEN_MUTEX, MUTEX_THEN_GIL], ids=["gil-first", "mutex-first"])
def test_half_of_it_is_no_inversion(strategy, half):
    done = run(half, strategy)
    assert "WARNING: ThreadSanitizer" not in done.stderr
    assert done.returncode == 0


def test_correct_code_is_not_reported(strategy):
    source = """
import workloads
alloc = small(strategy, blocks=16, max_wait=DEADLINE)
alloc.register_memory_pressure_callback(lambda event: None)
assert workloads.run(alloc, 100, garbage=3, steady=1, native=1) == 0
"""
    done = run(source, strategy)
    assert "WARNING: ThreadSanitizer" not in done.stderr
    assert done.returncode == 0
