// SPDX-License-Identifier: Apache-2.0
#pragma once
// Device memory as a Python object.

#include <cstdint>
#include <memory>

#include <boost/python.hpp>

#include <flex/device_memory.hpp>
#include <spyre/data_ptr.hpp>

namespace spyre_alloc {

/// Owns one allocation. Dropping it gives the memory back, with or without the GIL in sight of
/// others; it may outlive its allocator.
///
/// Confined to attached threads, like any Python object.
class Buffer {
 public:
  Buffer(spyre::DataPtr data, std::uint64_t nbytes, std::shared_ptr<flex::DeviceMemory> device)
      : data_(std::move(data)), nbytes_(nbytes), device_(std::move(device)) {}

  [[nodiscard]] std::uint64_t nbytes() const noexcept { return nbytes_; }
  [[nodiscard]] bool freed() const noexcept { return freed_; }
  /// Raises ValueError after free().
  void requireUsable() const;
  [[nodiscard]] std::uint64_t address() const;
  [[nodiscard]] boost::python::tuple chunks() const;
  /// Raises BufferError while views of it exist. Twice is harmless.
  void free();
  [[nodiscard]] std::string repr() const;

  /// The buffer protocol. Returns -1 with a Python error set.
  int exportView(PyObject* self, Py_buffer* view, int flags) noexcept;
  void releaseView() noexcept { --views_; }

 private:
  spyre::DataPtr data_;
  std::uint64_t nbytes_;
  std::shared_ptr<flex::DeviceMemory> device_;
  Py_ssize_t views_ = 0;
  bool freed_ = false;
};

void exposeBuffer();

}  // namespace spyre_alloc
