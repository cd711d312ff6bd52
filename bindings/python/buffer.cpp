// SPDX-License-Identifier: Apache-2.0
#include "buffer.hpp"

#include <limits>

#include <fmt/format.h>

#include <flex/bytes.hpp>
#include <spyre/spyre_allocator.hpp>

#include "arguments.hpp"
#include "bound.hpp"
#include "collectable.hpp"

namespace spyre_alloc {
namespace bp = boost::python;

void Buffer::requireUsable() const {
  if (freed_) raise(PyExc_ValueError, "this buffer was freed");
}

std::uint64_t Buffer::address() const {
  requireUsable();
  return reinterpret_cast<std::uint64_t>(data_.get());
}

bp::tuple Buffer::chunks() const {
  requireUsable();
  bp::list chunks;
  if (flex::CompositeAddress const* const address = spyre::addressOf(data_)) {
    for (flex::Chunk const& chunk : address->chunks()) {
      bp::dict fields;
      fields["address"] = chunk.address;
      fields["offset"] = chunk.offset;
      fields["nbytes"] = chunk.nbytes;
      fields["region"] = chunk.region;
      fields["domain"] = chunk.domain;
      chunks.append(fields);
    }
  }
  return bp::tuple(chunks);
}

void Buffer::free() {
  if (freed_) return;
  if (views_ > 0) {
    raise(
        PyExc_BufferError,
        fmt::format("cannot free a buffer while {} view{} of it exist{} (memoryview, numpy array)",
                    views_, views_ == 1 ? "" : "s", views_ == 1 ? "s" : ""));
  }
  freed_ = true;
  data_.clear();
}

std::string Buffer::repr() const {
  if (freed_) return fmt::format("<spyre_alloc.Buffer, {}, freed>", flex::formatBytes(nbytes_));
  return fmt::format("<spyre_alloc.Buffer, {} at {:#x}>", flex::formatBytes(nbytes_), address());
}

int Buffer::exportView(PyObject* self, Py_buffer* view, int flags) noexcept {
  static std::byte nothing{};
  view->obj = nullptr;
  if (freed_) {
    PyErr_SetString(PyExc_ValueError, "this buffer was freed");
    return -1;
  }
  std::byte* memory = &nothing;
  if (flex::CompositeAddress const* const address = spyre::addressOf(data_)) {
    if (address->chunkCount() > 1) {
      PyErr_SetString(PyExc_BufferError, "a buffer of several chunks is not contiguous");
      return -1;
    }
    memory = device_->hostPointer(address->address());
    if (memory == nullptr) {
      PyErr_SetString(PyExc_BufferError,
                      "the memory of this device is not addressable by the host");
      return -1;
    }
  }
  if (nbytes_ > static_cast<std::uint64_t>(std::numeric_limits<Py_ssize_t>::max())) {
    PyErr_SetString(PyExc_BufferError, "this buffer is too large for a view");
    return -1;
  }
  if (PyBuffer_FillInfo(view, self, memory, static_cast<Py_ssize_t>(nbytes_), 0, flags) != 0) {
    return -1;
  }
  ++views_;
  return 0;
}

namespace {

Buffer* bufferOf(PyObject* self) noexcept {
  return static_cast<Buffer*>(bp::objects::find_instance_impl(self, bp::type_id<Buffer>()));
}

int getBuffer(PyObject* self, Py_buffer* view, int flags) {
  if (view == nullptr) {
    PyErr_SetString(PyExc_BufferError, "a view is needed");
    return -1;
  }
  Buffer* const buffer = bufferOf(self);
  if (buffer == nullptr) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_ValueError, "this buffer was never initialised");
    return -1;
  }
  return buffer->exportView(self, view, flags);
}

void releaseBuffer(PyObject* self, Py_buffer* /*view*/) {
  if (Buffer* const buffer = bufferOf(self)) buffer->releaseView();
}

bp::object enter(bp::object const& self) {
  bp::extract<Buffer const&> const buffer(self);
  buffer().requireUsable();
  return self;
}

bool leave(Buffer& self, bp::object const&, bp::object const&, bp::object const&) {
  self.free();
  return false;
}

}  // namespace

void exposeBuffer() {
  bp::object const type =
      bp::class_<Buffer, boost::noncopyable>(
          "Buffer",
          "Device memory, owned.\n\n"
          "Made by :meth:`SpyreAllocator.allocate`. The memory goes back when the buffer is "
          "freed,\n"
          "leaves a ``with`` block, or is dropped; dropping works in any reference cycle, in\n"
          "finalizers, on any thread, and after the allocator is gone. On a simulated device it\n"
          "has the buffer protocol: ``memoryview(buffer)``, ``numpy.asarray(buffer)``.\n\n"
          "No member blocks.",
          bp::no_init)
          .add_property("nbytes", bound<&Buffer::nbytes>, "int: Bytes that were asked for.")
          .add_property("address", bound<&Buffer::address>,
                        "int: Device address of the first chunk; 0 if there is none.\n\n"
                        "Raises\n------\nValueError\n    After ``free()``.")
          .add_property("chunks", bound<&Buffer::chunks>,
                        "tuple of dict: ``address``, ``offset``, ``nbytes`` (rounded up to 128),\n"
                        "``region`` and ``domain`` of each chunk, in order.\n\n"
                        "Raises\n------\nValueError\n    After ``free()``.")
          .add_property("freed", bound<&Buffer::freed>, "bool: Whether ``free()`` was called.")
          .def("free", bound<&Buffer::free>, bp::arg("self"),
               "free() -> None\n\n"
               "Give the memory back now. Calling it again does nothing.\n\n"
               "Raises\n------\nBufferError\n"
               "    While views (memoryview, numpy array) of the buffer exist.")
          .def("__len__", bound<&Buffer::nbytes>)
          .def("__repr__", bound<&Buffer::repr>)
          .def("__enter__", bound<&enter>)
          .def("__exit__", bound<&leave>);
  makeCollectable<Buffer>(type);
  auto* const slots = reinterpret_cast<PyTypeObject*>(type.ptr());
  slots->tp_as_buffer->bf_getbuffer = &getBuffer;
  slots->tp_as_buffer->bf_releasebuffer = &releaseBuffer;
  PyType_Modified(slots);
}

}  // namespace spyre_alloc
