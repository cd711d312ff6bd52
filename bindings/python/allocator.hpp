// SPDX-License-Identifier: Apache-2.0
#pragma once
// The allocator as a Python object.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <boost/python.hpp>

#include <spyre/any_allocator.hpp>

#include "buffer.hpp"
#include "detaching_allocator.hpp"
#include "python_gc.hpp"

namespace spyre_alloc {

/// A Python callable registered as a pressure callback. It belongs to the allocator's Python
/// object, which the garbage collector can look into; the registration in C++ only borrows the
/// callable.
struct CallbackSlot {
  PyObject* callable =
      nullptr;  ///< null once unregistered; guarded by being attached, as is handle
  flex::CallbackHandle handle;
};

/// What register_memory_pressure_callback returns. Dropping it does not unregister.
class Registration {
 public:
  explicit Registration(std::shared_ptr<CallbackSlot> slot) : slot_(std::move(slot)) {}
  Registration(Registration const&) = delete;
  Registration& operator=(Registration const&) = delete;

  /// Detached, returns when no other thread is inside the callback.
  void unregister();
  [[nodiscard]] bool registered() const noexcept { return slot_->callable != nullptr; }

 private:
  std::shared_ptr<CallbackSlot> slot_;
};

/// Confined to attached threads. Members that may block detach first.
class Allocator {
 public:
  Allocator(std::shared_ptr<spyre::AnyAllocator> allocator, std::optional<GcOptions> const& gc);
  Allocator(Allocator const&) = delete;
  Allocator& operator=(Allocator const&) = delete;
  ~Allocator();

  [[nodiscard]] Buffer* allocate(std::uint64_t nbytes, flex::AllocationDirective const& directive,
                                 std::optional<flex::Duration> max_wait);
  /// Null if there is nothing.
  [[nodiscard]] Buffer* tryAllocate(std::uint64_t nbytes,
                                    flex::AllocationDirective const& directive);
  [[nodiscard]] std::shared_ptr<Registration> registerCallback(
      boost::python::object const& callable, int priority);
  [[nodiscard]] flex::Statistics statistics() const;
  [[nodiscard]] GcStatistics gcStatistics() const noexcept;
  [[nodiscard]] spyre::AnyAllocator& any() const noexcept { return *allocator_; }
  [[nodiscard]] std::shared_ptr<DetachingAllocator> const& shared() const noexcept {
    return allocator_;
  }

  // For the garbage collector.
  int traverse(visitproc visit, void* arg) const;
  void clearReferences() noexcept;

  /// Ends all waiting in every allocator there is, detached. For the end of the interpreter.
  static void stopAll() noexcept;

 private:
  [[nodiscard]] Buffer* wrap(spyre::DataPtr data, std::uint64_t nbytes) const;

  std::shared_ptr<DetachingAllocator> allocator_;
  std::shared_ptr<flex::DeviceMemory> device_;
  std::optional<PythonGc> gc_;
  std::vector<std::shared_ptr<CallbackSlot>> slots_;
};

void exposeAllocator();
void exposeRegistration();

}  // namespace spyre_alloc
