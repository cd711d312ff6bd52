// SPDX-License-Identifier: Apache-2.0
#include "torch_allocator.hpp"

#include <atomic>
#include <cstring>

#include <torch/csrc/Exceptions.h>

#include <spyre/foreign_error.hpp>

#include "exit_gate.hpp"
#include "forked_child.hpp"
#include "spyre_device.hpp"

namespace spyre_torch {
namespace {

/// Never freed: storages may be released after every static object is gone.
std::atomic<std::shared_ptr<spyre::AnyAllocator>*> in_use{nullptr};

[[noreturn]] void throwPythonError() {
  python_error error;
  error.persist();
  throw error;  // NOLINT(misc-throw-by-value-catch-by-reference): the type PyTorch catches
}

/// The allocator is made by Python, where it is configured, when it is first wanted.
void makeInPython() {
  TORCH_CHECK(Py_IsInitialized() != 0, "the interpreter is gone, and no spyre allocator was made");
  pybind11::gil_scoped_acquire const attached;
  PyObject* const package = PyImport_ImportModule("spyre_alloc.torch");
  if (package == nullptr) throwPythonError();
  PyObject* const answer = PyObject_CallMethod(package, "_lazy_init", nullptr);
  Py_DECREF(package);
  if (answer == nullptr) throwPythonError();
  Py_DECREF(answer);
}

[[noreturn]] void throwAsTorchError(flex::OutOfMemoryError const& error) {
  flex::OutOfMemoryInfo const& info = error.info();
  TORCH_CHECK_WITH(
      OutOfMemoryError, false, spyreDevice(), " is out of memory [requested=", info.requested,
      ", free=", info.free, ", largest_free=", info.largest_free, ", total=", info.total,
      ", reason=", flex::toString(info.reason), ", reclaims=", info.reclaims, "]: ", error.what());
  std::terminate();  // not reached; the compiler does not know
}

}  // namespace

TorchAllocator& TorchAllocator::instance() noexcept {
  static TorchAllocator& allocator = *new TorchAllocator;
  return allocator;
}

void TorchAllocator::use(std::shared_ptr<spyre::AnyAllocator> allocator) {
  std::shared_ptr<spyre::AnyAllocator>* none = nullptr;
  auto made = std::make_unique<std::shared_ptr<spyre::AnyAllocator>>(std::move(allocator));
  TORCH_CHECK(in_use.compare_exchange_strong(none, made.get()), "the spyre allocator is in use");
  (void)made.release();
  watchForForks();
}

spyre::AnyAllocator& TorchAllocator::current() {
  if (in_use.load(std::memory_order_acquire) == nullptr) makeInPython();
  return **in_use.load(std::memory_order_acquire);
}

c10::DataPtr TorchAllocator::allocate(std::size_t nbytes) {
  if (nbytes == 0) return {nullptr, spyreDevice()};
  requireNoForkedUse();
  spyre::AnyAllocator& allocator = current();
  try {
    spyre::DataPtr data = allocator.allocate(nbytes);
    void* const address = data.get();
    spyre::Deleter const deleter = data.deleter();
    return {address, data.releaseContext(), deleter, spyreDevice()};
  } catch (flex::OutOfMemoryError const& error) {
    passExitGate();
    throwAsTorchError(error);
  } catch (spyre::ForeignError const& error) {
    passExitGate();
    pybind11::gil_scoped_acquire const attached;
    error.restore();
    throwPythonError();
  }
}

void TorchAllocator::copy_data(void* destination, void const* source, std::size_t count) const {
  std::memcpy(destination, source, count);
}

void TorchAllocator::stopWaiting() noexcept {
  if (auto const* const allocator = in_use.load(std::memory_order_acquire)) {
    (*allocator)->stopWaiting(flex::FailureReason::interpreter_finalizing);
  }
}

REGISTER_ALLOCATOR(kDeviceType, &TorchAllocator::instance())

}  // namespace spyre_torch
