# SPDX-License-Identifier: Apache-2.0
"""The collector finds a buffer in a reference cycle of any shape, and allocators as well."""

import gc
import weakref

import pytest
import spyre_alloc
from support import BLOCK, Thing, failure, pressure, small

pytestmark = pytest.mark.usefixtures("manual_gc")


def in_its_own_attribute(buffer):
    buffer.me = buffer


def in_a_pair(buffer):
    other = Thing(other=buffer)
    buffer.other = other


def in_a_list(buffer):
    buffer.items = [buffer]


def in_a_dict(buffer):
    buffer.table = {"me": buffer}


def in_a_tuple(buffer):
    buffer.items = (1, (2, buffer))


def in_an_object_with_a_cycle(buffer):
    thing = Thing(buffer=buffer)
    thing.me = thing


def in_an_object_with_a_finalizer(buffer):
    class Finalized:
        def __del__(self):
            self.seen = True

    thing = Finalized()
    thing.me, thing.buffer = thing, buffer


def in_a_closure(buffer):
    def function():
        return buffer, function

    buffer.function = function


def in_a_class(buffer):
    class Holder:
        held = buffer

    buffer.type = Holder


def in_a_bound_method(buffer):
    buffer.leave = buffer.free


def in_a_generator(buffer):
    def generator():
        mine = buffer
        yield mine

    buffer.generator = generator()
    next(buffer.generator)


def in_a_memoryview(buffer):
    buffer.view = memoryview(buffer)


def in_an_exception(buffer):
    try:
        raise spyre_alloc.OutOfMemoryError("made by hand")
    except spyre_alloc.OutOfMemoryError as error:
        buffer.error = error


def with_a_device(buffer):
    device = spyre_alloc.SimulatedDevice(BLOCK)
    device.buffer, buffer.device = buffer, device


def with_an_offset_device(buffer):
    device = spyre_alloc.OffsetDevice(BLOCK)
    device.buffer, buffer.device = buffer, device


def with_gc_options(buffer):
    options = spyre_alloc.GcOptions()
    options.buffer, buffer.options = buffer, options


def with_another_allocator(buffer):
    alloc = small("hold-mutex")
    alloc.buffer, buffer.alloc = buffer, alloc


def with_a_callback_of_another_allocator(buffer):
    alloc = small("hold-mutex")
    alloc.register_memory_pressure_callback(lambda event: buffer)
    buffer.alloc = alloc


def with_a_registration(buffer):
    alloc = small("hold-mutex")
    registration = alloc.register_memory_pressure_callback(print)
    registration.buffer, buffer.registration = buffer, registration


def with_a_native_worker(buffer):
    worker = spyre_alloc.NativeWorker(small("hold-mutex"), BLOCK, iterations=1)
    worker.buffer, buffer.worker = buffer, worker


def with_an_event(buffer):
    events = []
    alloc = small("hold-mutex", gc=False)
    alloc.register_memory_pressure_callback(events.append)
    kept = [alloc.allocate(4 * BLOCK)]
    failure(alloc.allocate, BLOCK)
    kept.clear()
    event = events.pop()
    event.buffer, buffer.event = buffer, event


SHAPES = [
    shape
    for name, shape in list(globals().items())
    if name.startswith(("in_", "with_")) and callable(shape)
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_buffer_in_a_cycle_is_freed_under_pressure(strategy, shape):
    alloc = small(strategy, blocks=1)
    shape(alloc.allocate(BLOCK))
    assert alloc.try_allocate(BLOCK) is None
    assert alloc.allocate(BLOCK).nbytes == BLOCK
    assert pressure(alloc, "events", "collections") == (1, 1)


def test_an_allocator_that_refers_to_itself_is_collected_and_gives_its_regions_back(strategy):
    device = spyre_alloc.SimulatedDevice(4 * BLOCK)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device)
    alloc.me = alloc
    gone = weakref.ref(alloc)
    del alloc
    assert device.bytes_in_use > 0
    gc.collect()
    assert gone() is None
    assert device.bytes_in_use == 0


def test_an_allocator_in_its_own_callback_and_buffer_is_collected(strategy):
    device = spyre_alloc.SimulatedDevice(4 * BLOCK)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, regions=1)
    buffer = alloc.allocate(BLOCK)
    buffer.alloc = alloc
    registration = alloc.register_memory_pressure_callback(lambda event: (alloc, buffer))
    assert registration.registered
    del alloc, buffer
    gc.collect()
    assert not registration.registered
    registration.unregister()
    assert device.bytes_in_use == 0


def test_a_live_cycle_is_left_alone(strategy):
    alloc = small(strategy, blocks=1, max_wait=0.0)
    buffer = alloc.allocate(BLOCK)
    buffer.me = buffer
    memoryview(buffer)[:4] = b"live"
    assert failure(alloc.allocate, BLOCK).reason == "exhausted"
    assert buffer.me is buffer
    assert bytes(memoryview(buffer)[:4]) == b"live"


def test_attributes_that_others_hold_survive_the_buffer(strategy):
    alloc = small(strategy, blocks=1)
    buffer = alloc.allocate(BLOCK)
    table = buffer.__dict__
    buffer.me, buffer.word = buffer, "kept"
    del buffer
    table.pop("me").free()
    assert table == {"word": "kept"}
    alloc.allocate(BLOCK)
    assert pressure(alloc, "events") == 0
