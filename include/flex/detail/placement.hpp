// SPDX-License-Identifier: Apache-2.0
#pragma once
// A request, checked and in the pool's own units.

#include <cstdint>

#include <boost/container/static_vector.hpp>

#include <flex/directive.hpp>
#include <flex/topology.hpp>

namespace flex::detail {

struct Placement {
  std::uint64_t requested = 0;  ///< bytes
  /// Granules of each chunk (of all of them together for scatter); 0: larger than any block can be.
  std::uint32_t granules = 0;
  std::uint32_t chunks = 1;  ///< exactly (interleave) or at most (scatter)
  PlacementPolicy policy = PlacementPolicy::bind;
  MemoryType memory_type = MemoryType::tensor;
  /// In order of preference; empty: any domain, all alike.
  boost::container::static_vector<DomainId, kMaxDomains> domains;
};

/// Most chunks that a scattered request may consist of.
inline constexpr std::uint32_t kMaxScatterChunks = 64;

/// Throws std::invalid_argument: zero bytes, an unknown or repeated domain, interleaving over fewer
/// than two domains.
[[nodiscard]] Placement makePlacement(std::uint64_t nbytes, AllocationDirective const& directive,
                                      DeviceTopology const& topology);

}  // namespace flex::detail
