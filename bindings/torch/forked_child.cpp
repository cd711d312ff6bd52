// SPDX-License-Identifier: Apache-2.0
#include "forked_child.hpp"

#include <atomic>
#include <mutex>

#include <c10/util/Exception.h>
#include <pthread.h>

#include "exit_gate.hpp"

namespace spyre_torch {
namespace {

std::atomic<bool> bad_fork{false};

}  // namespace

void watchForForks() {
  static std::once_flag once;
  std::call_once(once, [] {
    int const error = ::pthread_atfork(nullptr, nullptr, [] {
      bad_fork = true;
      resetExitGateAfterFork();
    });
    TORCH_CHECK(error == 0, "no memory for a fork handler");
  });
}

bool inBadFork() noexcept { return bad_fork.load(std::memory_order_relaxed); }

void requireNoForkedUse() {
  TORCH_CHECK(!inBadFork(),
              "Cannot re-initialize spyre in forked subprocess. To use spyre with multiprocessing, "
              "you must use the 'spawn' start method");
}

}  // namespace spyre_torch
