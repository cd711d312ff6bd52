// SPDX-License-Identifier: Apache-2.0
// An allocator with the strategy of fail_fast.hpp: eight requests come at once, three may queue.

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <flex/flex_allocator.ipp>  // the definitions: the library has none for our strategy
#include <flex/simulated_device.hpp>

#include "fail_fast.hpp"

template class flex::FlexAllocator<FailFast>;

int main() {
  constexpr unsigned kRequests = 8;
  flex::AllocatorOptions options;
  options.regions = 1;
  options.max_wait = std::chrono::seconds(60);
  flex::FlexAllocator<FailFast> allocator(
      std::make_shared<flex::SimulatedDevice>(kRequests * flex::kMiB), options,
      {.longest_queue = 3});

  std::vector<flex::CompositeAddress> cache;
  while (cache.size() < kRequests) cache.push_back(allocator.allocate(flex::kMiB));
  std::atomic<unsigned> turned_away{0};
  auto const handle = allocator.registerMemoryPressureCallback([&](flex::Lock& lock) {
    flex::Gap const unlocked(lock);
    // A slow callback: it goes on until more have come than may queue.
    while (turned_away < kRequests - 4) std::this_thread::yield();
    cache.clear();
  });

  std::atomic<unsigned> served{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kRequests; ++i) {
    threads.emplace_back([&] {
      try {
        auto const tensor = allocator.allocate(flex::kMiB);
        ++served;
      } catch (flex::OutOfMemoryError const& error) {
        if (error.reason() == flex::FailureReason::timed_out) ++turned_away;
      }
    });
  }
  for (auto& thread : threads) thread.join();

  fmt::print("{}: {} of {} served, {} turned away at a full gate, after {} reclaim\n",
             FailFast::kName, served.load(), kRequests, turned_away.load(),
             allocator.statistics().pressure.reclaims);
  return EXIT_SUCCESS;
}
