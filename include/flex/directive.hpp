// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a request wants its memory.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <flex/topology.hpp>

namespace flex {

/// What a region is for. A region acquired as `tensor` never serves `program` and the other way
/// round, unless the allocator has a single region, which then serves both.
enum class MemoryType : std::uint8_t { tensor, program };

enum class PlacementPolicy : std::uint8_t {
  bind,        ///< one chunk, in one of `domain_ids` (in their order; empty: any domain)
  interleave,  ///< equal chunks over `domain_ids` (empty: all domains), at least two; all or
               ///< nothing
  scatter,     ///< like bind, but several chunks of any size where no single block fits
};

/// Which region is searched first; ties go to the lowest region id, so equal requests get equal
/// addresses.
enum class RegionOrder : std::uint8_t { most_free, least_free };

/// Plain data; the default asks for one chunk of tensor memory anywhere.
struct AllocationDirective {
  PlacementPolicy policy = PlacementPolicy::bind;
  std::vector<DomainId> domain_ids = {};
  /// Prefer domains closer to this one (stable order among equally close ones).
  std::optional<DomainId> near = std::nullopt;
  MemoryType memory_type = MemoryType::tensor;
};

[[nodiscard]] constexpr std::string_view toString(MemoryType type) noexcept {
  return type == MemoryType::tensor ? "tensor" : "program";
}

}  // namespace flex
