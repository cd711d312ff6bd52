// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include <fmt/format.h>

#include <flex/allocator_options.hpp>

namespace flex {

namespace {

void requireWait(Duration max_wait) {
  if (max_wait >= Duration::zero() && max_wait <= kLongestWait) return;
  using Seconds = std::chrono::duration<double>;
  throw std::invalid_argument(fmt::format("max_wait is {} s; allowed are 0 to {} s",
                                          Seconds(max_wait).count(),
                                          Seconds(kLongestWait).count()));
}

}  // namespace

void RequestOptions::validate() const {
  if (max_wait) requireWait(*max_wait);
}

void AllocatorOptions::validate() const {
  if (regions < 1 || regions > kMaxRegionsPerDomain) {
    throw std::invalid_argument(
        fmt::format("regions is {}; allowed are 1 to {}", regions, kMaxRegionsPerDomain));
  }
  if (max_region_bytes < kGranule) {
    throw std::invalid_argument(
        fmt::format("max_region_bytes is {}; allowed are {} and more", max_region_bytes, kGranule));
  }
  if (acquisition == Acquisition::on_demand && fallback_sizes.empty()) {
    throw std::invalid_argument("fallback_sizes is empty; on-demand regions need a size");
  }
  for (std::uint64_t const size : fallback_sizes) {
    if (size < kGranule) {
      throw std::invalid_argument(
          fmt::format("fallback_sizes holds {}; allowed are {} and more", size, kGranule));
    }
  }
  requireWait(max_wait);
  if (clock == nullptr) throw std::invalid_argument("clock is null; use steadyClock()");
}

}  // namespace flex
