// SPDX-License-Identifier: Apache-2.0
// One program, two strategies: the choice is a template argument, and nothing else changes.

#include <cstdlib>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include <flex/flex_allocator.hpp>
#include <flex/simulated_device.hpp>
#include <flex/strategies/hold_mutex_during_callback.hpp>
#include <flex/strategies/release_and_condvar.hpp>

namespace {

template <flex::PressureStrategy Strategy>
void fillAndAskForMore() {
  flex::AllocatorOptions options;
  options.regions = 1;
  flex::FlexAllocator<Strategy> allocator(std::make_shared<flex::SimulatedDevice>(4 * flex::kMiB),
                                          options);

  std::vector<flex::CompositeAddress> cache;
  auto const handle = allocator.registerMemoryPressureCallback(
      [&](flex::Lock& lock, flex::PressureEvent const& event) -> flex::ReclaimResult {
        flex::Gap const unlocked(lock);  // for anything that may block; ends with the callback
        fmt::print("{}: {} wanted, {} free: {} cached blocks dropped\n", Strategy::kName,
                   flex::formatBytes(event.requested), flex::formatBytes(event.free), cache.size());
        cache.clear();
        return {};
      });

  while (cache.size() < 4) cache.push_back(allocator.allocate(flex::kMiB));
  flex::CompositeAddress const tensor = allocator.allocate(2 * flex::kMiB);

  flex::PressureStatistics const pressure = allocator.statistics().pressure;
  fmt::print("{}: {} at {:#x} after {} event and {} reclaim\n", Strategy::kName,
             flex::formatBytes(tensor.nbytes()), tensor.address(), pressure.events,
             pressure.reclaims);
}

}  // namespace

int main() {
  fillAndAskForMore<flex::HoldMutexDuringCallback>();
  fillAndAskForMore<flex::ReleaseAndCondvar>();
  return EXIT_SUCCESS;
}
