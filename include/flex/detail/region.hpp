// SPDX-License-Identifier: Apache-2.0
#pragma once
// One region of the device and the blocks in it.

#include <cstdint>

#include <flex/bytes.hpp>
#include <flex/detail/block_index.hpp>
#include <flex/device_memory.hpp>
#include <flex/directive.hpp>

namespace flex::detail {

/// Memory types that a region serves, one bit each.
using MemoryTypes = std::uint8_t;
inline constexpr MemoryTypes kBothMemoryTypes = 3;

[[nodiscard]] constexpr MemoryTypes maskOf(MemoryType type) noexcept {
  return static_cast<MemoryTypes>(1U << static_cast<unsigned>(type));
}

class Engine;

/// A region's identity, its place on the device, and its block index.
///
/// Thread-compatible: concurrent use of one object needs external locking.
class Region {
 public:
  /// Throws std::bad_alloc.
  Region(Engine* engine, std::uint32_t region_id, DeviceRegion const& range,
         MemoryTypes memory_types)
      : owner(engine),
        id(region_id),
        where(range),
        types(memory_types),
        index(static_cast<std::uint32_t>(range.nbytes / kGranule)) {}

  [[nodiscard]] bool serves(MemoryType type) const noexcept { return (types & maskOf(type)) != 0; }

  Engine* const owner;  ///< whom its blocks go back to
  std::uint32_t const id;
  DeviceRegion const where;
  MemoryTypes const types;
  BlockIndex index;
};

/// What a used block's `user` word holds: the bytes lost to rounding, and whether this is the first
/// chunk of its CompositeAddress (which is counted once).
struct BlockUse {
  std::uint32_t slack = 0;
  bool first = false;

  [[nodiscard]] constexpr std::uint32_t packed() const noexcept {
    return slack << 1U | static_cast<std::uint32_t>(first);
  }
  [[nodiscard]] static constexpr BlockUse unpack(std::uint32_t word) noexcept {
    return {word >> 1U, (word & 1U) != 0};
  }
};

}  // namespace flex::detail
