// SPDX-License-Identifier: Apache-2.0
// What running out of memory costs, and whom: the strategies against each other, with reclaims of a
// given length.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <benchmark/benchmark.h>
#include <boost/thread/thread.hpp>

#include <flex/flex_allocator.hpp>
#include <flex/offset_device.hpp>
#include <flex/sync/thread_annotations.hpp>

#include "peers/flex_peer.hpp"
#include "registry.hpp"
#include "works/latencies.hpp"

namespace flexbench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kRegion = flex::kGiB;
constexpr std::uint64_t kBallast = 700 * flex::kMiB;  ///< what a reclaim frees
constexpr std::uint64_t kWanted = 600 * flex::kMiB;   ///< fits only without the ballast
constexpr std::uint64_t kSmall = 64 * flex::kKiB;     ///< always fits

template <class Strategy>
std::unique_ptr<flex::FlexAllocator<Strategy>> makeAllocator() {
  flex::AllocatorOptions options = oneRegion();
  options.max_wait = std::chrono::seconds(30);
  return std::make_unique<flex::FlexAllocator<Strategy>>(
      std::make_shared<flex::OffsetDevice>(kRegion), options);
}

/// Another thread's small block may stand in the way for a moment.
template <class Strategy>
flex::CompositeAddress takeBallast(flex::FlexAllocator<Strategy>& allocator) {
  for (;;) {
    if (auto ballast = allocator.tryAllocate(kBallast)) return std::move(*ballast);
    boost::this_thread::yield();
  }
}

/// A thread allocates small blocks, which always fit, every `pace`, while another one's requests
/// need reclaims that take `reclaim`. Only what overlaps a reclaim is counted, each call from its
/// own beginning: calls that a stalled thread did not come to make are not.
template <class Strategy>
void bystanders(benchmark::State& state, std::chrono::microseconds reclaim,
                std::chrono::microseconds pace, int events) {
  for (auto _ : state) {
    auto const allocator = makeAllocator<Strategy>();
    std::atomic<bool> reclaiming{false};
    std::atomic<bool> stop{false};
    flex::CompositeAddress ballast;
    auto const pressure = allocator->registerMemoryPressureCallback(
        [&](flex::Lock& lock) FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
          lock.unlock();
          reclaiming = true;
          std::this_thread::sleep_for(reclaim);
          ballast.reset();
          reclaiming = false;
          lock.lock();
        });

    Latencies calls(std::size_t{1} << 22);
    boost::thread bystander([&] {
      Clock::time_point next = Clock::now();
      while (!stop) {
        if (pace.count() != 0) {
          while (Clock::now() < next && !stop) {
          }
          next = std::max(next + pace, Clock::now());
        }
        bool const began_inside = reclaiming;
        auto const begin = Clock::now();
        auto block = allocator->allocate(kSmall);
        auto const end = Clock::now();
        bool const ended_inside = reclaiming;
        block.reset();
        if (began_inside || ended_inside) calls.add(end - begin);
      }
    });

    Latencies stalls(static_cast<std::size_t>(events));
    for (int i = 0; i < events; ++i) {
      ballast = takeBallast(*allocator);
      auto const begin = Clock::now();
      auto block = allocator->allocate(kWanted);
      stalls.add(Clock::now() - begin);
      block.reset();
    }
    stop = true;
    bystander.join();
    state.counters["calls"] = static_cast<double>(calls.count());
    state.counters["p50_ns"] = calls.quantile(0.50);
    state.counters["p99_ns"] = calls.quantile(0.99);
    state.counters["max_ns"] = calls.quantile(1.0);
    state.counters["requester_p50_ns"] = stalls.quantile(0.50);
  }
}

/// From the free that makes room until the thread that waited for it runs.
void freeToWake(benchmark::State& state, int wakes) {
  for (auto _ : state) {
    auto const allocator = makeAllocator<flex::ReleaseAndCondvar>();
    Latencies latencies(static_cast<std::size_t>(wakes));
    for (int i = 0; i < wakes; ++i) {
      flex::CompositeAddress ballast = allocator->allocate(kBallast);
      std::uint64_t const waits = allocator->statistics().pressure.waits;
      Clock::time_point running;
      boost::thread waiter([&] {
        auto const block = allocator->allocate(kWanted);
        running = Clock::now();
      });
      while (allocator->statistics().pressure.waits == waits) boost::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(500));  // until it is really asleep
      auto const freed = Clock::now();
      ballast.reset();
      waiter.join();
      latencies.add(running - freed);
    }
    state.counters["p50_ns"] = latencies.quantile(0.50);
    state.counters["p99_ns"] = latencies.quantile(0.99);
  }
}

/// A request that needs a reclaim, less the time inside its only callback, less a request that
/// fits.
template <class Strategy>
void eventCost(benchmark::State& state, int events) {
  for (auto _ : state) {
    auto const allocator = makeAllocator<Strategy>();
    flex::CompositeAddress ballast;
    Clock::duration inside{};
    auto const pressure = allocator->registerMemoryPressureCallback(
        [&](flex::Lock& lock) FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
          auto const begin = Clock::now();
          lock.unlock();
          ballast.reset();
          lock.lock();
          inside = Clock::now() - begin;
        });
    Latencies fitting(static_cast<std::size_t>(events));
    Latencies extra(static_cast<std::size_t>(events));
    for (int i = 0; i < events; ++i) {
      auto begin = Clock::now();
      auto block = allocator->allocate(kWanted);
      fitting.add(Clock::now() - begin);
      block.reset();

      ballast = allocator->allocate(kBallast);
      begin = Clock::now();
      block = allocator->allocate(kWanted);
      extra.add(Clock::now() - begin - inside);
    }
    state.counters["p50_ns"] = extra.quantile(0.50) - fitting.quantile(0.50);
    state.counters["p99_ns"] = extra.quantile(0.99) - fitting.quantile(0.50);
  }
}

/// tryAllocate of what does not fit: in a full region, or in one with small holes only.
template <class Strategy>
void failing(benchmark::State& state) {
  auto const allocator = makeAllocator<Strategy>();
  auto const ballast = allocator->allocate(kBallast);
  for (auto _ : state) {
    auto block = allocator->tryAllocate(kWanted);
    benchmark::DoNotOptimize(block);
    if (block) state.SkipWithError("the request did not fail");
  }
  state.SetItemsProcessed(state.iterations());
}

template <class Strategy>
void addFor(Registry& registry, std::string const& name) {
  for (int const milliseconds : {1, 3, 10, 33, 100}) {
    int const events = static_cast<int>(registry.scaled(milliseconds > 33 ? 6 : 30));
    for (int const pace : {0, 50}) {
      registry.add("BYSTANDER/" + std::to_string(milliseconds) + "ms" +
                       (pace == 0 ? "/nonstop/" : "/") + name,
                   1, [=](benchmark::State& state) {
                     bystanders<Strategy>(state, std::chrono::milliseconds(milliseconds),
                                          std::chrono::microseconds(pace), events);
                   });
    }
  }
  int const events = static_cast<int>(registry.scaled(20'000));
  registry.add("EVENT/" + name, 1,
               [=](benchmark::State& state) { eventCost<Strategy>(state, events); });
  registry.add("FAILING/" + name, registry.scaled(2'000'000), &failing<Strategy>);
}

}  // namespace

void addPressureBenchmarks(Registry& registry) {
  addFor<flex::HoldMutexDuringCallback>(registry, std::string(FlexHold::kName));
  addFor<flex::ReleaseAndCondvar>(registry, std::string(FlexRelease::kName));
  int const wakes = static_cast<int>(registry.scaled(300));
  registry.add("WAKE/" + std::string(FlexRelease::kName), 1,
               [=](benchmark::State& state) { freeToWake(state, wakes); });
}

}  // namespace flexbench
