# SPDX-License-Identifier: Apache-2.0
"""A buffer: what it shows, how it is freed, and how the host reaches its memory."""

import gc
import sys
import weakref

import pytest
import spyre_alloc
from support import BLOCK, Task, small, used_bytes

numpy = pytest.importorskip("numpy")


@pytest.fixture
def alloc(strategy):
    return small(strategy)


def test_it_knows_its_size_and_place(alloc):
    buffer = alloc.allocate(1000)
    assert buffer.nbytes == len(buffer) == 1000
    assert not buffer.freed
    (chunk,) = buffer.chunks
    assert chunk["address"] == buffer.address
    assert chunk["nbytes"] == 1024
    assert (chunk["offset"], chunk["region"], chunk["domain"]) == (0, 0, 0)
    assert buffer.address % 128 == 0


def test_two_buffers_do_not_overlap(alloc):
    first, second = alloc.allocate(1), alloc.allocate(1)
    assert abs(first.address - second.address) >= 128


def test_it_shows_what_it_is(alloc):
    buffer = alloc.allocate(BLOCK)
    assert repr(buffer) == f"<spyre_alloc.Buffer, 64.00 KiB at {buffer.address:#x}>"
    buffer.free()
    assert repr(buffer) == "<spyre_alloc.Buffer, 64.00 KiB, freed>"


def test_its_properties_cannot_be_changed(alloc):
    buffer = alloc.allocate(BLOCK)
    for name in ("nbytes", "address", "chunks", "freed"):
        with pytest.raises(AttributeError):
            setattr(buffer, name, 0)


def test_dropping_it_frees(alloc):
    buffer = alloc.allocate(BLOCK)
    assert used_bytes(alloc) == BLOCK
    del buffer
    assert used_bytes(alloc) == 0


def test_freeing_twice_is_harmless(alloc):
    buffer = alloc.allocate(BLOCK)
    buffer.free()
    buffer.free()
    assert buffer.freed
    del buffer
    assert used_bytes(alloc) == 0
    assert alloc.memory_stats()["allocation.all.freed"] == 1
    assert alloc.memory_stats()["misuses"] == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda buffer: buffer.address,
        lambda buffer: buffer.chunks,
        lambda buffer: memoryview(buffer),
        lambda buffer: bytes(buffer),
        lambda buffer: buffer.__enter__(),
    ],
    ids=["address", "chunks", "memoryview", "bytes", "with"],
)
def test_use_after_free_is_a_value_error(alloc, use):
    buffer = alloc.allocate(BLOCK)
    buffer.free()
    with pytest.raises(ValueError, match="freed"):
        use(buffer)
    assert buffer.nbytes == BLOCK


def test_numpy_refuses_a_freed_buffer(alloc):
    buffer = alloc.allocate(BLOCK)
    buffer.free()
    with pytest.raises(ValueError, match="freed"):
        numpy.frombuffer(buffer, numpy.uint8)


def test_with_frees_at_the_end(alloc):
    with alloc.allocate(BLOCK) as buffer:
        assert used_bytes(alloc) == BLOCK
    assert buffer.freed and used_bytes(alloc) == 0


def test_with_frees_after_an_exception_and_lets_it_through(alloc):
    with pytest.raises(KeyError):
        with alloc.allocate(BLOCK) as buffer:
            raise KeyError
    assert buffer.freed and used_bytes(alloc) == 0


def test_with_bears_an_early_free(alloc):
    with alloc.allocate(BLOCK) as buffer:
        buffer.free()
    assert buffer.freed


def test_a_memoryview_reads_and_writes_the_memory(alloc):
    buffer = alloc.allocate(1000)
    view = memoryview(buffer)
    assert (view.nbytes, view.format, view.itemsize, view.ndim) == (1000, "B", 1, 1)
    assert view.contiguous and not view.readonly
    view[:5] = b"hello"
    assert bytes(memoryview(buffer)[:5]) == b"hello"


def test_numpy_sees_the_same_memory(alloc):
    buffer = alloc.allocate(BLOCK)
    array = numpy.asarray(buffer)
    assert array.dtype == numpy.uint8 and array.shape == (BLOCK,)
    array[:] = 7
    assert set(bytes(memoryview(buffer))) == {7}
    assert array.ctypes.data == buffer.address
    assert numpy.frombuffer(buffer, numpy.float32).shape == (BLOCK // 4,)


@pytest.mark.parametrize("make", [memoryview, numpy.asarray], ids=["memoryview", "numpy"])
def test_it_cannot_be_freed_while_a_view_exists(alloc, make):
    buffer = alloc.allocate(BLOCK)
    view = make(buffer)
    with pytest.raises(BufferError, match="1 view "):
        buffer.free()
    assert not buffer.freed and len(view) == BLOCK
    other = make(buffer)
    with pytest.raises(BufferError, match="2 views "):
        buffer.free()
    del view, other
    buffer.free()
    assert used_bytes(alloc) == 0


def test_a_with_block_that_leaves_a_view_raises_buffer_error(alloc):
    views = []
    with pytest.raises(BufferError):
        with alloc.allocate(BLOCK) as buffer:
            views.append(memoryview(buffer))
    assert not buffer.freed
    views.clear()
    buffer.free()


@pytest.mark.parametrize("make", [memoryview, numpy.asarray], ids=["memoryview", "numpy"])
def test_a_view_keeps_the_buffer_alive(alloc, make):
    view = make(alloc.allocate(BLOCK))
    gc.collect()
    assert used_bytes(alloc) == BLOCK
    view[0] = 1
    del view
    assert used_bytes(alloc) == 0


def test_a_released_view_no_longer_counts(alloc):
    buffer = alloc.allocate(BLOCK)
    with memoryview(buffer):
        pass
    buffer.free()


def test_a_buffer_without_memory_is_a_buffer(alloc):
    buffer = alloc.allocate(0)
    assert (buffer.nbytes, len(buffer), buffer.address, buffer.chunks) == (0, 0, 0, ())
    assert bytes(memoryview(buffer)) == b""
    assert numpy.asarray(buffer).shape == (0,)
    assert used_bytes(alloc) == 0
    assert alloc.memory_stats()["allocation.all.allocated"] == 0
    buffer.free()
    with pytest.raises(ValueError):
        memoryview(buffer)


def test_an_interleaved_buffer_is_not_contiguous(strategy):
    device = spyre_alloc.SimulatedDevice(4 * BLOCK, domains=2)
    alloc = spyre_alloc.SpyreAllocator(strategy, device=device, regions=1)
    buffer = alloc.allocate(BLOCK, policy="interleave")
    assert len(buffer.chunks) == 2
    with pytest.raises(BufferError, match="contiguous"):
        memoryview(buffer)
    buffer.free()


def test_memory_of_an_offset_device_is_not_addressable(strategy):
    alloc = spyre_alloc.SpyreAllocator(strategy, device=spyre_alloc.OffsetDevice(BLOCK), regions=1)
    buffer = alloc.allocate(128)
    assert buffer.address > 0
    with pytest.raises(BufferError, match="addressable"):
        memoryview(buffer)
    buffer.free()


def test_a_buffer_outlives_its_allocator(strategy):
    device = spyre_alloc.SimulatedDevice(BLOCK)
    buffer = spyre_alloc.SpyreAllocator(strategy, device=device, regions=1).allocate(BLOCK)
    gc.collect()
    assert device.bytes_in_use == BLOCK
    memoryview(buffer)[:4] = b"live"
    assert bytes(memoryview(buffer)[:4]) == b"live"
    del buffer
    assert device.bytes_in_use == 0


def test_it_may_be_freed_on_another_thread(alloc):
    box = [alloc.allocate(BLOCK)]
    Task(box.clear).result()
    assert used_bytes(alloc) == 0


def test_it_has_attributes_and_weak_references(alloc):
    buffer = alloc.allocate(BLOCK)
    buffer.name = "weights"
    gone = weakref.ref(buffer)
    assert buffer.name == "weights" and gone() is buffer
    del buffer
    assert gone() is None


def test_it_cannot_be_made_by_hand():
    with pytest.raises((TypeError, RuntimeError)):
        spyre_alloc.Buffer()
    with pytest.raises(ValueError, match="never initialised"):
        memoryview(spyre_alloc.Buffer.__new__(spyre_alloc.Buffer))


def test_views_leak_no_references(alloc):
    buffer = alloc.allocate(BLOCK)
    count = sys.getrefcount(buffer)
    for _ in range(100):
        memoryview(buffer)
        numpy.asarray(buffer)
    assert sys.getrefcount(buffer) == count
