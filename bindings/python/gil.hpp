// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interpreter as a lock: attaching to it, detaching from it, and the end of it.
//
// "Attached" means: holds the GIL, or on a free-threaded build is attached to the interpreter. The
// rules are the same for both (docs/concurrency.md): never wait while attached, never attach while
// holding the allocator's mutex.

#include <cstdint>
#include <utility>

#include <Python.h>
#include <cxxabi.h>

namespace spyre_alloc {

/// Whether this thread is attached now. Callable from any thread at any time.
[[nodiscard]] bool attached() noexcept;

/// Sleeps for ever. For a thread that the interpreter wants to end while C++ frames of Boost.Python
/// are above it: unwinding through those aborts the process, a parked thread lets it exit.
[[noreturn]] void parkForever() noexcept;

/// Calls `f`, which may run Python code or take the GIL. A thread that the interpreter ends inside
/// (up to 3.13 it does so by unwinding the stack) is parked here instead.
template <class F>
decltype(auto) parkingIfEnded(F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (abi::__forced_unwind&) {
    parkForever();  // never leaves the handler: swallowing the unwinding would abort
  }
}

/// Detaches this thread for its lifetime, so that it may wait. Requires: attached, unless the
/// interpreter is finalizing, when this does nothing: nobody waits then.
class Detached {
 public:
  Detached() noexcept;
  Detached(Detached const&) = delete;
  Detached& operator=(Detached const&) = delete;
  ~Detached();

 private:
  void attach() noexcept;
  void detach() noexcept;

  PyThreadState* state_ = nullptr;
};

/// Attaches this thread for its lifetime: one that is attached already, one that Python knows and
/// that is detached, or one that never saw Python. Ask ok(): once the interpreter is going away it
/// attaches no more. Requires: holds no allocator's mutex.
class Attached {
 public:
  Attached() noexcept;
  Attached(Attached const&) = delete;
  Attached& operator=(Attached const&) = delete;
  ~Attached();

  [[nodiscard]] bool ok() const noexcept { return ok_; }

 private:
  bool ok_;
  PyThreadState* own_ = nullptr;  ///< made for this thread, which Python had never seen
  PyGILState_STATE state_{};
};

/// From now on Attached refuses, and so does every wait in the module. Waits (detached, at most one
/// second) until threads that are attached through Attached have left. Requires: attached.
void closeInterpreter() noexcept;

/// Around fork(): no thread is in the middle of making itself known to Python, and in the child
/// nobody but this thread attaches.
void lockForFork() noexcept;
void unlockAfterFork(bool in_child) noexcept;

/// Whether closeInterpreter() was called, or the interpreter is finalizing or gone.
[[nodiscard]] bool interpreterClosed() noexcept;

/// How often a thread was detached by Detached or attached by Attached, for tests of what keeps
/// away from the interpreter.
[[nodiscard]] std::uint64_t interpreterTransitions() noexcept;

}  // namespace spyre_alloc
