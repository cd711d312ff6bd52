// SPDX-License-Identifier: Apache-2.0
#pragma once
// Durations that were measured one by one.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace flexbench {

/// Confined: use from the thread that owns it.
class Latencies {
 public:
  explicit Latencies(std::size_t capacity) { nanoseconds_.reserve(capacity); }

  /// Drops what is beyond the capacity, so that no measurement pays for moving the others.
  void add(std::chrono::nanoseconds duration) {
    if (nanoseconds_.size() < nanoseconds_.capacity()) nanoseconds_.push_back(duration.count());
  }
  [[nodiscard]] std::size_t count() const { return nanoseconds_.size(); }

  /// The smallest measurement that `share` of them do not exceed; 0 if there is none.
  [[nodiscard]] double quantile(double share) {
    if (nanoseconds_.empty()) return 0;
    auto const last = static_cast<double>(nanoseconds_.size() - 1);
    auto const at = nanoseconds_.begin() + static_cast<std::ptrdiff_t>(share * last + 0.5);
    std::nth_element(nanoseconds_.begin(), at, nanoseconds_.end());
    return static_cast<double>(*at);
  }

 private:
  std::vector<std::chrono::nanoseconds::rep> nanoseconds_;
};

}  // namespace flexbench
