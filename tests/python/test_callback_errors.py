# SPDX-License-Identifier: Apache-2.0
"""What becomes of exceptions in pressure callbacks."""

import traceback

import pytest
import spyre_alloc
from support import BLOCK, SLOWNESS, Task, failure, fill, litter, pressure, small, used_bytes

pytestmark = pytest.mark.usefixtures("manual_gc")


class Special(Exception):
    pass


def raises(error):
    def the_callback_that_raises(event):
        raise error

    return the_callback_that_raises


def test_an_exception_is_the_cause_of_the_failure(strategy):  # case 92
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)
    special = Special("why")
    alloc.register_memory_pressure_callback(raises(special))
    error = failure(alloc.allocate, BLOCK)
    assert error.__cause__ is special
    assert error.reason == "callback-failed"
    assert "callback" in str(error)
    assert pressure(alloc, "callback_errors", "collections") == (1, 1)
    assert len(kept) == 4


def test_the_cause_has_its_own_traceback(strategy):
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)
    alloc.register_memory_pressure_callback(raises(Special()))
    error = failure(alloc.allocate, BLOCK)
    frames = traceback.extract_tb(error.__cause__.__traceback__)
    assert frames[-1].name == "the_callback_that_raises"
    assert frames[-1].filename == __file__
    assert len(kept) == 4


def test_the_first_of_several_exceptions_is_the_cause(strategy):
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)
    first, second = Special(1), Special(2)
    alloc.register_memory_pressure_callback(raises(second), 2)
    alloc.register_memory_pressure_callback(raises(first), 1)
    assert failure(alloc.allocate, BLOCK).__cause__ is first
    assert pressure(alloc, "callback_errors") == 2
    assert len(kept) == 4


def test_others_run_and_may_serve_the_request_after_an_exception(strategy):
    alloc = small(strategy)
    litter(alloc, 4)
    alloc.register_memory_pressure_callback(raises(Special()))
    assert alloc.allocate(BLOCK).nbytes == BLOCK
    assert pressure(alloc, "callback_errors", "collections", "out_of_memory") == (1, 1, 0)


def test_the_allocator_is_usable_after_an_exception(strategy):
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)
    registration = alloc.register_memory_pressure_callback(raises(Special()))
    failure(alloc.allocate, BLOCK)
    alloc.check_invariants()
    registration.unregister()
    assert failure(alloc.allocate, BLOCK).__cause__ is None
    kept.clear()
    assert alloc.allocate(4 * BLOCK).nbytes == 4 * BLOCK


def test_an_exception_is_raised_as_it_is_by_option(strategy):
    alloc = small(strategy, max_wait=0.0, callback_errors="propagate")
    kept = fill(alloc)
    special = Special("as it is")
    later = []
    alloc.register_memory_pressure_callback(raises(special), 1)
    alloc.register_memory_pressure_callback(later.append, 2)
    with pytest.raises(Special) as caught:
        alloc.allocate(BLOCK)
    assert caught.value is special
    assert traceback.extract_tb(special.__traceback__)[-1].name == "the_callback_that_raises"
    assert not later
    alloc.check_invariants()
    kept.clear()
    alloc.allocate(BLOCK)


@pytest.mark.parametrize("option", ["cause", "propagate"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_ordinary_exception_is_never_kept_back(strategy, kind, option):
    alloc = small(strategy, max_wait=0.0, callback_errors=option)
    kept = fill(alloc)
    alloc.register_memory_pressure_callback(raises(kind("now")))
    with pytest.raises(kind):
        alloc.allocate(BLOCK)
    alloc.check_invariants()
    kept.clear()
    alloc.allocate(BLOCK)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_not_even_if_the_callback_freed_enough(strategy, kind):
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)

    def callback(event):
        kept.clear()
        raise kind

    alloc.register_memory_pressure_callback(callback)
    with pytest.raises(kind):
        alloc.allocate(BLOCK)
    assert used_bytes(alloc) == 0


def test_a_memory_error_of_a_callback_is_a_cause_like_any_other(strategy):
    alloc = small(strategy, max_wait=0.0)
    other = small(strategy, max_wait=0.0)
    kept = fill(alloc), fill(other)
    alloc.register_memory_pressure_callback(lambda event: other.allocate(BLOCK))
    error = failure(alloc.allocate, BLOCK)
    assert error.reason == "callback-failed"
    assert isinstance(error.__cause__, spyre_alloc.OutOfMemoryError)
    assert error.__cause__.reason == "exhausted"
    assert pressure(other, "events") == 1
    assert len(kept) == 2


def test_an_error_raised_with_a_cause_keeps_it(strategy):
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)
    inner = KeyError("inner")

    def callback(event):
        raise Special from inner

    alloc.register_memory_pressure_callback(callback)
    assert failure(alloc.allocate, BLOCK).__cause__.__cause__ is inner
    assert len(kept) == 4


def test_an_exception_on_a_native_thread_harms_nobody(strategy):
    for option in ("cause", "propagate"):
        alloc = small(strategy, max_wait=0.0, callback_errors=option)
        kept = fill(alloc)
        alloc.register_memory_pressure_callback(raises(Special()))
        worker = spyre_alloc.NativeWorker(alloc, BLOCK, iterations=3)
        worker.join()
        assert worker.allocations == 0
        assert pressure(alloc, "callback_errors") >= 1
        alloc.check_invariants()
        kept.clear()
        alloc.allocate(BLOCK)


def test_a_callback_with_the_wrong_signature_is_a_type_error(strategy):
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)
    alloc.register_memory_pressure_callback(lambda: None)
    assert isinstance(failure(alloc.allocate, BLOCK).__cause__, TypeError)
    assert len(kept) == 4


def test_a_waiting_thread_takes_over_from_one_whose_callback_raised(strategy):  # case 94
    alloc = small(strategy, max_wait=20.0 * SLOWNESS, gc=False, callback_errors="propagate")
    kept = fill(alloc)
    calls = []

    def callback(event):
        calls.append(event)
        if len(calls) > 1:
            kept.clear()
            return
        while pressure(alloc, "waits") < 1:
            Task(lambda: None).wait()
        raise Special

    alloc.register_memory_pressure_callback(callback)
    tasks = [Task(alloc.allocate, BLOCK) for _ in range(2)]
    errors = [type(task.wait().error) for task in tasks]
    assert sorted(errors, key=str) == sorted([Special, type(None)], key=str)
    assert len(calls) == 2
