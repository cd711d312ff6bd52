// SPDX-License-Identifier: Apache-2.0
#pragma once
// What compare_strategies.cpp runs on each strategy.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <flex/flex_allocator.hpp>
#include <flex/simulated_device.hpp>

/// Requesters make garbage of `kLitter` bytes a block that only the callback frees. Bystanders keep
/// a few small blocks and replace the oldest, so their live data always fits.
struct Workload {
  static constexpr std::uint64_t kLitter = 64 * flex::kKiB;
  static constexpr std::uint64_t kSmall = 4 * flex::kKiB;
  static constexpr unsigned kBystanders = 2;
  static constexpr unsigned kKept = 8;                          ///< blocks of one bystander
  static constexpr std::chrono::microseconds kCollection{300};  ///< what a reclaim takes

  unsigned threads = 4;
  double seconds = 2.0;
  std::uint64_t capacity = 8 * flex::kMiB;

  /// Below this a failure could be a true one: every small block may stand in the way of a large.
  [[nodiscard]] std::uint64_t leastCapacity() const {
    return kLitter * (kBystanders * (kKept + 1) + 2 * threads);
  }
};

struct Outcome {
  std::uint64_t allocations = 0;
  flex::PressureStatistics pressure;
  std::vector<std::int64_t> stalls;     ///< nanoseconds; requests that could not be served at once
  std::vector<std::int64_t> latencies;  ///< nanoseconds; all requests of bystanders
};

/// What the callback frees, and nothing else.
struct Garbage {
  std::mutex mutex;
  std::vector<flex::CompositeAddress> blocks;

  void add(flex::CompositeAddress block) {
    std::unique_lock const guard(mutex);
    blocks.push_back(std::move(block));
  }
  void collect() {
    std::this_thread::sleep_for(Workload::kCollection);
    std::vector<flex::CompositeAddress> found;  // freed after the guard has let go
    std::unique_lock const guard(mutex);
    found.swap(blocks);
  }
};

/// Calls `allocate` and notes how long it took.
template <class Allocate>
flex::CompositeAddress timed(std::vector<std::int64_t>& times, Allocate allocate) {
  auto const began = std::chrono::steady_clock::now();
  flex::CompositeAddress address = allocate();
  times.push_back((std::chrono::steady_clock::now() - began).count());
  return address;
}

template <flex::PressureStrategy Strategy>
Outcome runWorkload(Workload const& workload) {
  flex::AllocatorOptions options;
  options.regions = 1;
  options.max_wait = std::chrono::seconds(60);
  auto device = std::make_shared<flex::SimulatedDevice>(workload.capacity);
  flex::FlexAllocator<Strategy> allocator(std::move(device), options);

  Garbage garbage;
  auto const handle = allocator.registerMemoryPressureCallback([&](flex::Lock& lock) {
    flex::Gap const unlocked(lock);
    garbage.collect();
  });

  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> allocations{0};
  auto const request = [&](std::vector<std::int64_t>& stalls) {
    while (!stop) {
      try {
        auto at_once = allocator.tryAllocate(Workload::kLitter);
        garbage.add(at_once ? std::move(*at_once)
                            : timed(stalls, [&] { return allocator.allocate(Workload::kLitter); }));
        ++allocations;
      } catch (flex::OutOfMemoryError const&) {  // a false one; the allocator counts them
      }
    }
  };
  auto const standBy = [&](std::vector<std::int64_t>& latencies) {
    std::deque<flex::CompositeAddress> kept;
    while (!stop) {
      if (kept.size() == Workload::kKept) kept.pop_front();
      try {
        kept.push_back(timed(latencies, [&] { return allocator.allocate(Workload::kSmall); }));
        ++allocations;
      } catch (flex::OutOfMemoryError const&) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  };

  std::vector<std::vector<std::int64_t>> times(workload.threads + Workload::kBystanders);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < times.size(); ++i) {
    if (i < workload.threads) {
      threads.emplace_back(request, std::ref(times[i]));
    } else {
      threads.emplace_back(standBy, std::ref(times[i]));
    }
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(workload.seconds));
  stop = true;
  for (auto& thread : threads) thread.join();

  Outcome outcome;
  outcome.allocations = allocations;
  outcome.pressure = allocator.statistics().pressure;
  for (unsigned i = 0; i < times.size(); ++i) {
    auto& all = i < workload.threads ? outcome.stalls : outcome.latencies;
    all.insert(all.end(), times[i].begin(), times[i].end());
  }
  std::ranges::sort(outcome.stalls);
  std::ranges::sort(outcome.latencies);
  return outcome;
}
