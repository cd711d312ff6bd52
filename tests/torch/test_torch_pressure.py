# SPDX-License-Identifier: Apache-2.0
"""What happens when the device's memory runs out: that it did, what was done, and how often."""

import gc
import io
import re
import threading

import pytest
import torch
from support import Task, reached
from torch_support import BLOCK, Node, block, fill, litter, pressure, small, used

from spyre_alloc import _core

BLOCKS = 16
small(BLOCKS, max_wait=0.1)  # which release-condvar waits for others, where all is taken


@pytest.fixture(autouse=True)
def garbage_goes_by_pressure_alone():
    """And quickly: what PyTorch and pytest made is not looked at."""
    gc.collect()
    gc.disable()
    gc.freeze()
    assert used() == 0
    torch.spyre.reset_accumulated_memory_stats()
    yield
    gc.unfreeze()
    gc.collect()
    gc.enable()


def collections():
    """Collections since the start; they are never reset."""
    return pressure("collections")


def with_the_gil(nbytes=BLOCK):
    return torch.UntypedStorage(nbytes, device="spyre")


def by_resizing(nbytes=BLOCK):
    storage = torch.UntypedStorage(0, device="spyre")
    storage.resize_(nbytes)
    return storage


_saved = io.BytesIO()
torch.save(torch.empty(BLOCK, dtype=torch.uint8), _saved)


def by_loading():
    _saved.seek(0)
    return torch.load(_saved, map_location="spyre")


@pytest.mark.parametrize("make", [block, with_the_gil, by_resizing, by_loading])
def test_young_garbage_costs_one_young_collection(make):
    before = collections()
    litter(BLOCKS)
    assert used() == BLOCKS * BLOCK
    kept = make()
    assert pressure("events", "reclaims", "bytes_reclaimed") == (1, 1, BLOCKS * BLOCK)
    assert collections() - before == 1
    assert used() == BLOCK
    del kept


@pytest.mark.parametrize("make", [block, with_the_gil])
def test_old_garbage_costs_a_full_one(make):
    nodes = [Node(block()) for _ in range(BLOCKS)]
    gc.collect()  # now they are old
    nodes.clear()
    before = collections()
    kept = make()
    assert pressure("events", "reclaims", "bytes_reclaimed") == (1, 1, BLOCKS * BLOCK)
    assert collections() - before == 3
    del kept


@pytest.mark.parametrize("make", [block, with_the_gil, by_resizing, by_loading])
def test_out_of_memory_is_pytorchs_error_with_our_numbers(make):
    kept = fill()
    before = collections()
    with pytest.raises(torch.OutOfMemoryError, match="out of memory") as caught:
        make()
    text = str(caught.value)
    fields = rf"\[requested={BLOCK}, free=0, largest_free=0, total={BLOCKS * BLOCK}, reason=exhausted, reclaims=(\d)\]"
    (reclaims,) = re.search(fields, text).groups()
    assert isinstance(caught.value, RuntimeError)
    assert 1 <= int(reclaims) <= 3  # one strategy looks again while it waits
    assert pressure("events", "reclaims", "out_of_memory") == (1, int(reclaims), 1)
    assert collections() - before == 3 * int(reclaims)
    assert used() == BLOCKS * BLOCK  # nothing is lost
    kept.pop()
    assert make() is not None


def test_the_reason_tells_what_would_help():
    with pytest.raises(torch.OutOfMemoryError, match="reason=larger-than-any-region"):
        block((BLOCKS + 1) * BLOCK)
    kept = fill()
    del kept[::2]
    with pytest.raises(torch.OutOfMemoryError, match="reason=fragmented"):
        block(2 * BLOCK)


def test_what_is_served_at_once_does_not_touch_the_interpreter():
    kept = fill()[1:]
    before = _core.interpreter_transitions()
    for _ in range(2000):
        block()  # PyTorch calls without the GIL
        with_the_gil()
    assert _core.interpreter_transitions() == before
    assert pressure("events") == 0
    del kept


def test_who_holds_the_gil_is_detached_while_it_waits():
    def transitions(make):
        litter(BLOCKS)
        before = _core.interpreter_transitions()
        made = make()  # the statistics may wait for the mutex, so they are asked for later
        after = _core.interpreter_transitions()
        del made
        return after - before

    attached_for_the_collection = transitions(block)
    assert attached_for_the_collection >= 1
    assert transitions(with_the_gil) == attached_for_the_collection + 1


@pytest.mark.parametrize("make", [block, with_the_gil, by_resizing])
def test_other_threads_run_while_a_request_is_in_its_callback(make):
    kept = fill()
    inside, go_on = threading.Event(), threading.Event()

    def callback(event):
        inside.set()
        reached(go_on)
        kept.pop()

    registration = torch.spyre.memory.register_memory_pressure_callback(callback)
    task = Task(make)
    reached(inside)
    go_on.set()  # could not be reached if the GIL were kept
    assert task.result() is not None
    registration.unregister()
    assert pressure("events", "reclaims", "callbacks") == (1, 1, 1)


def test_a_callback_runs_before_the_collector_and_sees_the_numbers():
    seen, cache = [], fill()

    def callback(event):
        seen.append((event.requested, event.free, event.total))
        cache.clear()

    registration = torch.spyre.register_memory_pressure_callback(callback, priority=5)
    assert registration.registered
    before = collections()
    kept = block()
    assert seen == [(BLOCK, 0, BLOCKS * BLOCK)]
    assert collections() == before
    registration.unregister()
    assert not registration.registered
    kept = [kept] + fill()
    with pytest.raises(torch.OutOfMemoryError):
        block()
    assert len(seen) == 1
    registration.unregister()  # again does nothing


def test_a_callback_that_fails_does_not_keep_others_from_helping():
    def callback(event):
        raise ValueError("no")

    registration = torch.spyre.register_memory_pressure_callback(callback)
    litter(BLOCKS)
    block()
    assert pressure("callback_errors", "out_of_memory") == (1, 0)
    registration.unregister()


@pytest.mark.parametrize("make", [block, with_the_gil])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interruption_comes_through_pytorch_as_itself(make, error):
    def callback(event):
        raise error("stop")

    registration = torch.spyre.register_memory_pressure_callback(callback)
    kept = fill()
    with pytest.raises(error, match="stop"):
        make()
    registration.unregister()
    assert used() == BLOCKS * BLOCK
    del kept


def test_a_finalizer_may_allocate_while_it_is_collected():
    made = []

    class Allocates(Node):
        def __del__(self):
            self.held = None
            made.append(block())

    litter(BLOCKS // 2)
    for _ in range(BLOCKS // 4):
        Allocates((block(), block()))  # what the first frees may go to the request
    kept = block()
    assert len(made) == BLOCKS // 4
    assert pressure("events", "reclaims", "out_of_memory") == (1, 1, 0)
    del kept
    made.clear()


def test_a_request_inside_a_collection_fails_at_once_and_says_so():
    errors = []

    class Greedy(Node):
        def __del__(self):
            try:
                block()
            except torch.OutOfMemoryError as error:
                errors.append(str(error))

    kept = fill()
    Greedy(None)
    gc.collect()
    assert len(errors) == 1 and "reason=inside-finalizer" in errors[0]
    del kept


def test_graphs_of_autograd_in_cycles_are_freed():
    def step():
        x = torch.ones(BLOCK // 4, device="spyre", requires_grad=True)
        y = (x * 2).exp()
        Node(y)

    for _ in range(100):
        step()
    assert pressure("reclaims") > 5
    assert pressure("out_of_memory") == 0
