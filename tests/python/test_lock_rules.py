# SPDX-License-Identifier: Apache-2.0
"""Builds that check the lock rules end with the rule's text where one is broken."""

import pytest
from support import SANITIZERS, run_python

breaker = pytest.importorskip("flexalloc_rule_breaker")
pytestmark = pytest.mark.skipif(not breaker.CHECKED, reason="this build does not check the rules")

PREAMBLE = """
import sys
import flexalloc_rule_breaker as breaker
from support import *
strategy = sys.argv[1]
"""
R1 = "R1: waits for an allocator lock while attached to the interpreter"
R2 = "R2: attaches to the interpreter while holding the allocator mutex"
R3 = "R3: foreign code is entered while holding the allocator mutex"


def aborts_with(rule, source, strategy):
    done = run_python(PREAMBLE + source, strategy)
    assert done.returncode != 0
    assert "flexalloc: lock rule broken at " in done.stderr, done.stderr
    assert rule in done.stderr
    if not SANITIZERS:
        assert done.returncode == -6
    return True


def test_waiting_for_the_mutex_while_attached_breaks_rule_1(strategy):  # case 12
    source = """
alloc = small(strategy)
kept = fill(alloc)
breaker.wait_attached(alloc._bare_capsule(), BLOCK)
"""
    assert aborts_with(R1, source, strategy)


def test_it_is_found_without_pressure_and_on_another_thread(strategy):
    source = """
alloc = small(strategy, max_wait=0.0)
kept = fill(alloc)
Task(breaker.wait_attached, alloc._bare_capsule(), BLOCK).wait()
"""
    assert aborts_with(R1, source, strategy)


def test_the_fast_path_breaks_no_rule_while_attached(strategy):
    source = """
alloc = small(strategy)
for _ in range(100):
    breaker.wait_attached(alloc._bare_capsule(), BLOCK)
print("well")
"""
    done = run_python(PREAMBLE + source, strategy)
    assert (done.returncode, done.stdout.strip()) == (0, "well"), done.stderr


NESTED = """
owner = small("hold-mutex", gc=False, max_wait=0.0)
other = small(strategy, max_wait=0.0, gc=GC)
other.register_memory_pressure_callback(print)
kept = fill(owner), fill(other)
breaker.allocate_under_the_mutex(owner._bare_capsule(), other._bare_capsule(), BLOCK)
failure(owner.allocate, BLOCK)
"""


@pytest.mark.parametrize("collecting", [True, False], ids=["to-collect", "to-call"])
def test_attaching_while_holding_a_mutex_breaks_rule_2(collecting):
    source = NESTED.replace("GC", str(collecting))
    assert aborts_with(R2, source, "hold-mutex")


def test_calling_back_while_holding_a_mutex_breaks_rule_3():
    assert aborts_with(R3, NESTED.replace("GC", "True"), "release-condvar")


def test_a_handler_may_take_the_place_of_the_abort(strategy):
    source = """
breaker.ignore_rules()
alloc = small(strategy, max_wait=0.0, gc=False)
kept = fill(alloc)
try:
    breaker.wait_attached(alloc._bare_capsule(), BLOCK)
except MemoryError:
    print("survived")
"""
    done = run_python(PREAMBLE + source, strategy)
    assert (done.returncode, done.stdout.strip()) == (0, "survived"), done.stderr
