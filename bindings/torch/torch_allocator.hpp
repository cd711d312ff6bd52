// SPDX-License-Identifier: Apache-2.0
#pragma once
// The allocator of Python's making, as PyTorch wants one.

#include <memory>

#include <c10/core/Allocator.h>

#include <spyre/any_allocator.hpp>

namespace spyre_torch {

/// Memory of the device for PyTorch's storages. Zero bytes are a null pointer and count nothing.
///
/// Thread-safe; PyTorch calls it with the GIL and without. What can be served at once is, without
/// touching the interpreter.
class TorchAllocator final : public c10::Allocator {
 public:
  [[nodiscard]] static TorchAllocator& instance() noexcept;

  /// From now on memory comes from `allocator`, which may be called attached. Once.
  void use(std::shared_ptr<spyre::AnyAllocator> allocator);

  /// Blocks, detached, as the allocator's strategy does. Throws c10::OutOfMemoryError; python_error
  /// for what a callback raised; c10::Error in a forked child of a process that had used the
  /// device.
  c10::DataPtr allocate(std::size_t nbytes) override;
  /// None: a pointer alone does not suffice to free.
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* destination, void const* source, std::size_t count) const override;

  /// Ends all waiting, now and later. For the end of the interpreter.
  void stopWaiting() noexcept;

 private:
  [[nodiscard]] spyre::AnyAllocator& current();
};

}  // namespace spyre_torch
