// SPDX-License-Identifier: Apache-2.0
#include "exit_gate.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include <Python.h>
#include <unistd.h>

namespace spyre_torch {
namespace {

std::atomic<bool> shut{false};
std::atomic<unsigned long> closer{0};

/// The threads that passed, are alive, and do not stay at the gate.
struct Passers {
  std::mutex mutex;
  std::set<unsigned long> idents;
};

/// Never freed: threads end when static objects are gone.
std::atomic<Passers*> passers{new Passers};

void noteGone() noexcept {
  Passers& all = *passers.load();
  std::lock_guard const guard(all.mutex);
  all.idents.erase(PyThread_get_thread_ident());
}

/// Known from its thread's first way through until the thread ends.
struct Passer {
  Passer() noexcept {
    Passers& all = *passers.load();
    std::lock_guard const guard(all.mutex);
    all.idents.insert(PyThread_get_thread_ident());
  }
  Passer(Passer const&) = delete;
  Passer& operator=(Passer const&) = delete;
  ~Passer() { noteGone(); }
  bool here = true;
};
thread_local Passer passer;

[[noreturn]] void stay() noexcept {
  if (PyGILState_Check() != 0) (void)PyEval_SaveThread();
  noteGone();
  for (;;) ::pause();
}

}  // namespace

void passExitGate() noexcept {
  if (!passer.here || !shut.load(std::memory_order_relaxed)) return;
  if (closer != PyThread_get_thread_ident() && PyGILState_GetThisThreadState() != nullptr) stay();
}

void shutExitGate(std::vector<unsigned long> const& threads) {
  closer = PyThread_get_thread_ident();
  shut = true;
  auto const someAreOut = [&] {
    Passers& all = *passers.load();
    std::lock_guard const guard(all.mutex);
    return std::ranges::any_of(threads, [&](unsigned long id) { return all.idents.contains(id); });
  };
  Py_BEGIN_ALLOW_THREADS;
  auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (someAreOut() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Py_END_ALLOW_THREADS;
}

void resetExitGateAfterFork() noexcept { passers = new Passers; }

}  // namespace spyre_torch
