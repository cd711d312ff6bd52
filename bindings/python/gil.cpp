// SPDX-License-Identifier: Apache-2.0
#include "gil.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include <boost/thread/lock_guard.hpp>
#include <boost/thread/mutex.hpp>
#include <unistd.h>

#include <flex/sync/lock_rules.hpp>

namespace spyre_alloc {
namespace {

std::atomic<bool> closed{false};
/// Threads between asking whether they may attach and having detached again. closeInterpreter()
/// waits for them: a check alone would race with the end of the interpreter.
std::atomic<int> attaching{0};
std::atomic<std::uint64_t> transitions{0};

/// Held while a thread state is made, and over a fork. CPython makes them under a lock of its own
/// without the GIL, so a fork may hit it; up to 3.11 the child takes that lock before it makes it
/// anew, and hangs. Later versions take it themselves before they fork: with ours around it, that
/// would be a deadlock.
class ThreadStateLock {
 public:
  void lock() noexcept {
    if constexpr (kNeeded) mutex_.lock();
  }
  void unlock() noexcept {
    if constexpr (kNeeded) mutex_.unlock();
  }

 private:
  static constexpr bool kNeeded = PY_VERSION_HEX < 0x030C0000;
  boost::mutex mutex_;
};

ThreadStateLock& makingThreadState() noexcept {
  static ThreadStateLock& lock = *new ThreadStateLock;
  return lock;
}

bool finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

}  // namespace

std::uint64_t interpreterTransitions() noexcept { return transitions; }

bool interpreterClosed() noexcept { return closed || Py_IsInitialized() == 0 || finalizing(); }

// Not PyGILState_Check(): once there was a sub-interpreter it always says yes.
bool attached() noexcept {
  if (Py_IsInitialized() == 0) return false;
  PyThreadState* const mine = PyGILState_GetThisThreadState();
#if PY_VERSION_HEX >= 0x030D0000
  return mine != nullptr && mine == PyThreadState_GetUnchecked();
#else
  return mine != nullptr && mine == _PyThreadState_UncheckedGet();
#endif
}

void parkForever() noexcept {
  for (;;) ::pause();
}

Detached::Detached() noexcept {
  if (!finalizing()) detach();
}

Detached::~Detached() {
  if (state_ != nullptr) attach();
}

void Detached::detach() noexcept {
  transitions.fetch_add(1, std::memory_order_relaxed);
  state_ = PyEval_SaveThread();
}

void Detached::attach() noexcept {
  flex::sync::assertMayAttach("re-attaching to the interpreter");
  parkingIfEnded([this] { PyEval_RestoreThread(std::exchange(state_, nullptr)); });
}

Attached::Attached() noexcept {
  ++attaching;
  ok_ = !interpreterClosed();
  if (!ok_) {
    --attaching;
    return;
  }
  flex::sync::assertMayAttach("attaching to the interpreter");
  transitions.fetch_add(1, std::memory_order_relaxed);
  if (PyGILState_GetThisThreadState() == nullptr) {
    boost::lock_guard<ThreadStateLock> const guard(makingThreadState());
    own_ = PyThreadState_New(PyInterpreterState_Main());
  }
  parkingIfEnded([this] {
    if (own_ != nullptr) {
      PyEval_RestoreThread(own_);
    } else {
      state_ = PyGILState_Ensure();
    }
  });
}

Attached::~Attached() {
  if (!ok_) return;
  parkingIfEnded([this] {
    if (own_ != nullptr) {
      PyThreadState_Clear(own_);
      PyThreadState_DeleteCurrent();
    } else {
      PyGILState_Release(state_);
    }
  });
  --attaching;
}

void lockForFork() noexcept { makingThreadState().lock(); }

void unlockAfterFork(bool in_child) noexcept {
  if (in_child) attaching = 0;
  makingThreadState().unlock();
}

void closeInterpreter() noexcept {
  closed = true;
  Detached const detached;
  auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (attaching != 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace spyre_alloc
