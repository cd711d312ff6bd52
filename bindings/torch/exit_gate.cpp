// SPDX-License-Identifier: Apache-2.0
#include "exit_gate.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include <Python.h>
#include <unistd.h>

namespace spyre_torch {
namespace {

std::atomic<bool> shut{false};
std::atomic<std::thread::id> closer{};
std::atomic<int> alive{0};   // threads that Python knows and that passed
std::atomic<int> parked{0};  // those of them that stay

/// Counts its thread in, on its first way through, and out when the thread ends.
struct Passer {
  Passer() noexcept : known(PyGILState_GetThisThreadState() != nullptr) { alive += known ? 1 : 0; }
  Passer(Passer const&) = delete;
  Passer& operator=(Passer const&) = delete;
  ~Passer() { alive -= known ? 1 : 0; }
  bool known;
};
thread_local Passer passer;

[[noreturn]] void park() noexcept {
  ++parked;
  if (PyGILState_Check() != 0) (void)PyEval_SaveThread();
  for (;;) ::pause();
}

}  // namespace

void passExitGate() noexcept {
  bool const known = passer.known;
  if (shut.load(std::memory_order_relaxed) && known &&
      closer.load() != std::this_thread::get_id()) {
    park();
  }
}

void shutExitGate() noexcept {
  int const own = passer.known ? 1 : 0;
  closer = std::this_thread::get_id();
  shut = true;
  Py_BEGIN_ALLOW_THREADS auto const deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (alive - own > parked && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Py_END_ALLOW_THREADS
}

void resetExitGateAfterFork() noexcept {
  alive = passer.known ? 1 : 0;
  parked = 0;
}

}  // namespace spyre_torch
