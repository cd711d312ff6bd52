// SPDX-License-Identifier: Apache-2.0
#pragma once
// Threads that start together, and how long they took.

#include <chrono>
#include <cstddef>
#include <vector>

#include <boost/thread/barrier.hpp>
#include <boost/thread/thread.hpp>

namespace flexbench {

inline double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Runs `prepare(i)` then, all together, `work(i)` on `count` threads.
/// Returns the seconds from the common start until the last one has finished its work.
template <class Prepare, class Work>
double runTogether(unsigned count, Prepare const& prepare, Work const& work) {
  boost::barrier ready(count + 1);
  boost::barrier start(count + 1);
  boost::barrier finished(count + 1);
  boost::thread_group threads;
  for (unsigned i = 0; i < count; ++i) {
    threads.create_thread([&, i] {
      prepare(i);
      ready.wait();
      start.wait();
      work(i);
      finished.wait();
    });
  }
  ready.wait();
  auto const begin = std::chrono::steady_clock::now();
  start.wait();
  finished.wait();
  double const seconds = secondsSince(begin);
  threads.join_all();
  return seconds;
}

}  // namespace flexbench
