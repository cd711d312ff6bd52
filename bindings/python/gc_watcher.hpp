// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who is collecting garbage, and whether a collection really ran.

#include <atomic>
#include <chrono>
#include <cstdint>

#include <Python.h>
#include <boost/thread/condition_variable.hpp>
#include <boost/thread/mutex.hpp>

namespace spyre_alloc {

/// Listens on gc.callbacks. gc.collect() returns 0 both when there was nothing to find and when it
/// did nothing at all (another thread is collecting, or this one is inside a finalizer); only the
/// start of a collection of that generation on this thread proves that it ran.
///
/// One a process: collections belong to the interpreter, not to an allocator.
class GcWatcher {
 public:
  [[nodiscard]] static GcWatcher& instance() noexcept;

  /// Starts to listen. Requires: attached. Returns false with a Python error set.
  [[nodiscard]] bool install() noexcept;

  /// Around fork(). The other threads' collections do not exist in the child.
  void lockForFork() noexcept { mutex_.lock(); }
  void unlockAfterFork(bool in_child) noexcept;

  /// What one gc.collect() did.
  enum class Outcome : std::uint8_t {
    ran,
    inside_collection,  ///< this thread is inside one already
    busy,               ///< another thread kept collecting for all of the allowed time
    failed,             ///< gc.collect raised; the error was reported as unraisable
  };

  /// Runs gc.collect(generation), which ignores gc.disable(). If another thread is collecting,
  /// waits for it, detached, at most `patience`, and then collects. Requires: attached. Throws
  /// boost::thread_interrupted, and PythonAbort for Ctrl-C on the main thread.
  [[nodiscard]] Outcome collect(int generation, std::chrono::nanoseconds patience);

  /// Whether this thread is inside a collection. Any thread, attached or not.
  [[nodiscard]] bool collectingHere() const noexcept {
    return collecting_thread_ == PyThread_get_thread_ident();
  }

  /// Objects that gc.freeze() hides from collections; -1 with no error set if unknown. Requires:
  /// attached.
  [[nodiscard]] Py_ssize_t frozenCount() const noexcept;
  [[nodiscard]] bool enabled() const noexcept;

 private:
  static PyObject* onPhase(PyObject* self, PyObject* args) noexcept;
  void started(int generation) noexcept;
  void stopped() noexcept;
  [[nodiscard]] bool listening() const noexcept;

  // Borrowed for ever: fetched at import, because the gc module may be torn down before us.
  PyObject* collect_ = nullptr;
  PyObject* is_enabled_ = nullptr;
  PyObject* get_freeze_count_ = nullptr;
  PyObject* callbacks_ = nullptr;
  PyObject* listener_ = nullptr;

  std::atomic<unsigned long> collecting_thread_{0};
  boost::mutex mutex_;
  boost::condition_variable stopped_;
};

}  // namespace spyre_alloc
