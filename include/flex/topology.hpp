// SPDX-License-Identifier: Apache-2.0
#pragma once
// The banks of a device and how far apart they are.

#include <cstdint>
#include <vector>

namespace flex {

using DomainId = std::uint32_t;

/// The NUMA-like domains of a device, numbered from 0.
struct DeviceTopology {
  /// Bytes of each domain; the index is the DomainId. At least one.
  std::vector<std::uint64_t> domain_capacity;
  /// distance[a][b]: relative cost of reaching b from a, 0 on the diagonal. Empty: |a - b|.
  std::vector<std::vector<std::uint32_t>> distance;

  [[nodiscard]] DomainId domainCount() const noexcept {
    return static_cast<DomainId>(domain_capacity.size());
  }

  [[nodiscard]] std::uint32_t distanceBetween(DomainId a, DomainId b) const noexcept {
    if (distance.empty()) return a < b ? b - a : a - b;
    return distance[a][b];
  }

  /// Throws std::invalid_argument: no domain, more than kMaxDomains, a matrix of another shape.
  void validate() const;
};

inline constexpr DomainId kMaxDomains = 64;

/// One domain of `capacity` bytes.
[[nodiscard]] DeviceTopology singleDomain(std::uint64_t capacity);

}  // namespace flex
