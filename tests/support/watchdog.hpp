// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds for everything a test waits for, so that a hang is a message and not a silence.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace flex::test {

/// Longest real time a test waits for another thread. Far more than a loaded, sanitized run needs.
inline constexpr std::chrono::seconds kPatience{30};

/// Ends the process: threads that never come cannot be joined, so a test cannot go on from here.
[[noreturn]] inline void giveUpOn(char const* what) {
  std::fprintf(stderr, "watchdog: %lld s passed and still not: %s\n",
               static_cast<long long>(kPatience.count()), what);
  std::abort();
}

/// Returns once `holds()` is true.
template <class Predicate>
void waitUntil(Predicate holds, char const* what) {
  auto const deadline = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) giveUpOn(what);
    std::this_thread::yield();
  }
}

}  // namespace flex::test
