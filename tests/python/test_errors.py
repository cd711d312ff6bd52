# SPDX-License-Identifier: Apache-2.0
"""OutOfMemoryError: what it is, what it knows, why it came, and what it tells a person."""

import copy
import pickle
import traceback

import pytest
import spyre_alloc
from support import BLOCK, Task, failure, fill, small

OutOfMemoryError = spyre_alloc.OutOfMemoryError


def test_it_is_a_memory_error(strategy):
    alloc = small(strategy, max_wait=0.0)
    kept = fill(alloc)
    with pytest.raises(MemoryError) as caught:
        alloc.allocate(BLOCK)
    assert type(caught.value) is OutOfMemoryError
    assert issubclass(OutOfMemoryError, MemoryError)
    assert OutOfMemoryError.__module__ == "spyre_alloc"
    assert OutOfMemoryError.__qualname__ == "OutOfMemoryError"
    assert len(kept) == 4


def test_all_it_knows(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    del kept[0]
    kept.append(alloc.allocate(BLOCK // 2))
    error = failure(alloc.allocate, BLOCK, domain=0)
    assert error.requested == BLOCK
    assert error.free == error.largest_free == BLOCK // 2
    assert error.total == 4 * BLOCK
    assert error.domain == 0
    assert error.memory_type == "tensor"
    assert error.reason == "exhausted"
    assert error.reclaims == 1
    assert error.bytes_reclaimed == 0
    assert error.waited_ms == 0.0
    assert error.__cause__ is None


def test_what_its_callbacks_brought_back_is_told(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    alloc.register_memory_pressure_callback(lambda event: kept.pop() and None)
    error = failure(alloc.allocate, 4 * BLOCK)
    assert error.bytes_reclaimed == error.free == BLOCK
    assert len(kept) == 3


def exhausted(alloc):
    return fill(alloc), failure(alloc.allocate, BLOCK)


def fragmented(alloc):
    kept = fill(alloc)
    del kept[2], kept[0]
    return kept, failure(alloc.allocate, 2 * BLOCK)


def larger_than_any_region(alloc):
    return None, failure(alloc.allocate, 5 * BLOCK)


def inside_callback(alloc):
    kept = fill(alloc)
    errors = []
    alloc.register_memory_pressure_callback(
        lambda event: errors.append(failure(alloc.allocate, BLOCK))
    )
    failure(alloc.allocate, BLOCK)
    return kept, errors[0]


def callback_failed(alloc):
    kept = fill(alloc)
    alloc.register_memory_pressure_callback(lambda event: 1 / 0)
    return kept, failure(alloc.allocate, BLOCK)


ADVICE = {
    exhausted: "free memory, or use a larger capacity",
    fragmented: "not in one piece",
    larger_than_any_region: "no region can ever hold this much",
    inside_callback: "inside a pressure callback are served only from what is free",
    callback_failed: "its error is the cause of this one",
}


@pytest.mark.parametrize("situation", ADVICE, ids=lambda function: function.__name__)
def test_the_reason_and_the_text_fit_the_situation(strategy, situation):  # cases 85, 86
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept, error = situation(alloc)
    assert error.reason == situation.__name__.replace("_", "-")
    text = str(error)
    assert text.startswith(f"out of device memory ({error.reason}): tried to allocate ")
    assert ADVICE[situation] in text
    assert [advice for advice in ADVICE.values() if advice in text] == [ADVICE[situation]]
    assert alloc.pressure_stats()["failures"][error.reason] == 1
    del kept


def test_the_text_tells_the_sizes(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    text = str(failure(alloc.allocate, "1.5KiB", domain=0))
    assert "allocate 1.50 KiB of tensor memory in domain 0" in text
    assert "0 B of 256.00 KiB free, largest free block 0 B" in text
    assert "1 reclaim freed 0 B, waited 0.0 ms" in text
    assert len(kept) == 4


def test_fragmentation_is_reclaimed_for_once(strategy):  # case 83
    alloc = small(strategy, max_wait=0.0, gc=False)
    calls = []
    alloc.register_memory_pressure_callback(calls.append)
    _, error = fragmented(alloc)
    assert (error.free, error.largest_free) == (2 * BLOCK, BLOCK)
    assert len(calls) == error.reclaims == 1


def test_a_request_that_can_never_fit_runs_no_callback(strategy):
    alloc = small(strategy)
    calls = []
    alloc.register_memory_pressure_callback(calls.append)
    error = failure(alloc.allocate, 2**62)
    assert error.reason == "larger-than-any-region"
    assert error.requested == 2**62
    assert not calls and error.reclaims == 0


def test_a_handled_error_does_not_stick(strategy):  # case 89
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept, _ = exhausted(alloc)
    kept.clear()
    assert alloc.allocate(4 * BLOCK).nbytes == 4 * BLOCK
    alloc.check_invariants()


def test_ten_thousand_failures_leave_nothing_behind(strategy):  # case 41
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept, _ = exhausted(alloc)
    before = alloc.memory_stats()
    for _ in range(10_000):
        failure(alloc.allocate, BLOCK)
    after = alloc.memory_stats()
    assert after.pop("num_ooms") == before.pop("num_ooms") + 10_000
    assert after.pop("num_alloc_retries") == before.pop("num_alloc_retries") + 10_000
    assert after == before
    assert len(kept) == 4


def test_a_user_may_raise_it(strategy):
    error = OutOfMemoryError("by hand")
    assert str(error) == "by hand"
    assert (error.requested, error.free, error.largest_free, error.total) == (0, 0, 0, 0)
    assert (error.reclaims, error.bytes_reclaimed, error.waited_ms) == (0, 0, 0.0)
    assert (error.domain, error.memory_type, error.reason) == (None, "tensor", "exhausted")


def test_a_user_may_derive_from_it():
    class Mine(OutOfMemoryError):
        pass

    with pytest.raises(OutOfMemoryError):
        raise Mine("mine")


def test_it_travels_between_processes(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept, error = exhausted(alloc)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is OutOfMemoryError
        assert str(twin) == str(error)
        assert twin.requested == BLOCK and twin.reason == "exhausted"
    assert len(kept) == 4


def test_it_has_the_callers_context(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)
    try:
        raise KeyError("first")
    except KeyError as first:
        error = failure(alloc.allocate, BLOCK)
        assert error.__context__ is first
    assert len(kept) == 4


def test_a_traceback_names_the_line_that_asked(strategy):
    alloc = small(strategy, max_wait=0.0, gc=False)
    kept = fill(alloc)

    def the_function_that_asks():
        alloc.allocate(BLOCK)

    error = Task(the_function_that_asks).wait().error
    assert traceback.extract_tb(error.__traceback__)[-1].name == "the_function_that_asks"
    assert len(kept) == 4
