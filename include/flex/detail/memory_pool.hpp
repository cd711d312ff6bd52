// SPDX-License-Identifier: Apache-2.0
#pragma once
// The regions an allocator holds, and where in them a request is placed.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <flex/allocator_options.hpp>
#include <flex/chunk.hpp>
#include <flex/detail/placement.hpp>
#include <flex/detail/region.hpp>
#include <flex/statistics.hpp>

namespace flex::detail {

/// What is free where a request looks. Bytes.
struct FreeSpace {
  std::uint64_t free = 0;
  std::uint64_t largest = 0;
  std::uint64_t total = 0;
};

/// A region that could be asked of the device.
struct GrowthPlan {
  std::uint64_t nbytes = 0;
  DomainId domain = 0;
  MemoryTypes types = 0;
};

/// Regions, blocks and their counters. Knows no lock, no callback and makes no call to the device.
///
/// Thread-compatible: concurrent use of one object needs external locking.
class MemoryPool {
 public:
  /// Requires: options and topology are valid. Throws std::invalid_argument: the capacity is too
  /// small for that many regions.
  MemoryPool(AllocatorOptions const& options, DeviceTopology const& topology,
             std::uint64_t device_max_region_bytes);

  // --- blocks

  /// Takes the blocks of a request and appends them to `chunks`; all or nothing. Requires: room for
  /// placement.chunks chunks without a heap call.
  [[nodiscard]] bool tryPlace(Placement const& placement, ChunkList& chunks) noexcept;

  /// Gives one block back.
  void release(Region& region, NodeIndex node) noexcept;

  [[nodiscard]] Region& region(std::uint32_t id) noexcept { return *regions_[id]; }

  // --- regions

  /// Sizes the device should be asked for, in this order, until it agrees to one. Empty: the pool
  /// is as large as it may become, for this request.
  [[nodiscard]] std::vector<GrowthPlan> growthPlans(Placement const& placement) const;

  /// Regions that upfront acquisition takes at construction.
  [[nodiscard]] std::vector<GrowthPlan> const& upfrontPlans() const noexcept { return layout_; }

  /// Throws std::bad_alloc; then the region is still the caller's.
  void addRegion(DeviceRegion const& where, MemoryTypes types);

  /// Takes the wholly free regions out of the pool, all or those in one domain; the caller gives
  /// them back to the device.
  [[nodiscard]] std::vector<std::unique_ptr<Region>> takeEmptyRegions(
      std::optional<DomainId> domain = std::nullopt);

  /// Takes every region out. Requires: no block is used.
  [[nodiscard]] std::vector<std::unique_ptr<Region>> takeAllRegions() noexcept {
    return std::move(regions_);
  }

  // --- observers

  /// Whether a region, present or possible, could hold the request if it were wholly free.
  [[nodiscard]] bool couldEverServe(Placement const& placement) const noexcept;
  [[nodiscard]] FreeSpace freeSpace(Placement const& placement) const noexcept;
  [[nodiscard]] std::uint64_t liveAddresses() const noexcept {
    return static_cast<std::uint64_t>(counters_.allocations.current);
  }
  [[nodiscard]] std::int64_t bytesFreed() const noexcept { return bytes_freed_; }

  /// Fills in everything but Statistics::pressure and Statistics::misuses.
  void describe(Statistics& statistics) const noexcept;
  void resetPeak() noexcept;
  void resetAccumulated() noexcept;

  /// Visits every block: f(Region const&, BlockNode const&), by region id and offset.
  template <class F>
  void forEachBlock(F&& f) const {
    for (auto const& region : regions_) {
      if (region == nullptr) continue;
      BlockIndex const& index = region->index;
      for (NodeIndex node = index.firstBlock(); node != 0; node = index.node(node).next) {
        f(*region, index.node(node));
      }
    }
  }

  /// Throws InvariantViolation. Cost: a walk over all blocks.
  void checkInvariants() const;

 private:
  [[nodiscard]] bool placeInDomain(std::uint32_t granules, MemoryType type,
                                   std::optional<DomainId> domain, std::uint32_t slack,
                                   ChunkList& chunks) noexcept;
  [[nodiscard]] bool placeAnywhere(Placement const& placement, std::uint32_t granules,
                                   std::uint32_t slack, ChunkList& chunks) noexcept;
  [[nodiscard]] bool placeInterleaved(Placement const& placement, ChunkList& chunks) noexcept;
  [[nodiscard]] bool placeScattered(Placement const& placement, ChunkList& chunks) noexcept;
  [[nodiscard]] bool placeIn(Region& region, std::uint32_t granules, std::uint32_t slack,
                             ChunkList& chunks) noexcept;
  /// The region with the largest free block among those a request may use; null if none is free.
  [[nodiscard]] Region* roomiest(Placement const& placement) const noexcept;
  void undo(ChunkList& chunks) noexcept;
  [[nodiscard]] bool wants(Placement const& placement, Region const& region) const noexcept;
  [[nodiscard]] std::uint64_t largestPossible(DomainId domain, MemoryType type) const noexcept;
  [[nodiscard]] std::vector<DomainId> lackingDomains(Placement const& placement) const;

  Acquisition const acquisition_;
  RegionOrder const region_order_;
  std::uint32_t const max_regions_per_domain_;
  std::uint64_t const max_region_bytes_;
  std::vector<std::uint64_t> const fallback_sizes_;
  std::vector<std::uint64_t> const domain_capacity_;
  std::vector<GrowthPlan> layout_;                ///< upfront: one entry a region
  std::vector<std::unique_ptr<Region>> regions_;  ///< by id; null where a region was given back
  struct Counters {
    Stat allocations;
    Stat allocated_bytes;
    Stat requested_bytes;
    Stat regions;
    Stat reserved_bytes;
  } counters_;
  std::int64_t bytes_freed_ = 0;  ///< never reset, unlike the counters
};

}  // namespace flex::detail
