// SPDX-License-Identifier: Apache-2.0
#pragma once
// The regions an allocator holds, and where in them a request is placed.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <flex/allocator_options.hpp>
#include <flex/detail/block_list.hpp>
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
             std::uint64_t device_max_region_bytes, Engine* owner = nullptr);

  // --- blocks

  /// Takes the blocks of a request and appends them to `blocks`; all or nothing. Requires: room for
  /// placement.chunks blocks without a heap call.
  [[nodiscard]] bool tryPlace(Placement const& placement, BlockList& blocks) noexcept;

  /// The same for what nearly all requests are: one block of tensor memory, anywhere. Requires:
  /// 0 < requested <= kLargestPlain.
  [[nodiscard, gnu::always_inline]] BlockHandle tryPlacePlain(std::uint64_t requested) noexcept {
    std::uint64_t const nbytes = roundUpToGranule(requested);
    auto const granules = static_cast<std::uint32_t>(nbytes / kGranule);
    BlockHandle placed;
    if (only_tensor_region_ != nullptr) [[likely]] {
      placed = {only_tensor_region_, only_tensor_region_->index.allocate(granules)};
    } else {
      placed = placeInDomain(granules, MemoryType::tensor, std::nullopt);
    }
    if (!placed) return {};
    placed.region->index.node(placed.node).user =
        BlockUse{static_cast<std::uint32_t>(nbytes - requested), true}.packed();
    count(nbytes, requested);
    return placed;
  }
  static constexpr std::uint64_t kLargestPlain = std::uint64_t{1} << 38U;

  /// Gives one block back.
  [[gnu::always_inline]] void release(BlockHandle block) noexcept {
    BlockNode const& node = block.region->index.node(block.node);
    BlockUse const use = BlockUse::unpack(node.user);
    auto const nbytes = static_cast<std::int64_t>(node.size * kGranule);
    counters_.allocations.decrease(use.first ? 1 : 0);
    counters_.allocated_bytes.decrease(nbytes);
    counters_.requested_bytes.decrease(nbytes - use.slack);
    block.region->index.free(block.node);
    if (acquisition_ == Acquisition::on_demand && block.region->index.empty()) ++times_emptied_;
  }

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

  [[nodiscard]] bool hasEmptyRegion() const noexcept;
  /// How often a free has left an on-demand region wholly free.
  [[nodiscard]] std::uint64_t timesEmptied() const noexcept { return times_emptied_; }

  /// Takes every region out. Requires: no block is used.
  [[nodiscard]] std::vector<std::unique_ptr<Region>> takeAllRegions() noexcept {
    return std::move(regions_);
  }

  // --- observers

  /// Whether a region, present or possible, could hold the request if it were wholly free.
  [[nodiscard]] bool couldEverServe(Placement const& placement) const noexcept;
  /// Whether tryPlace() would find room. Cost: as largestFree() of each region.
  [[nodiscard]] bool fits(Placement const& placement) const noexcept;
  [[nodiscard]] FreeSpace freeSpace(Placement const& placement) const noexcept;
  [[nodiscard]] std::uint64_t liveAddresses() const noexcept {
    return static_cast<std::uint64_t>(counters_.allocations.current());
  }
  /// Since construction, whatever was reset.
  [[nodiscard]] std::int64_t bytesFreed() const noexcept { return counters_.allocated_bytes.freed; }

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
  /// One block in the first region, in their order, that has one. No block if none has.
  [[nodiscard]] BlockHandle placeInDomain(std::uint32_t granules, MemoryType type,
                                          std::optional<DomainId> domain) noexcept;
  [[nodiscard]] BlockHandle placeAnywhere(Placement const& placement) noexcept;
  [[nodiscard]] bool placeInterleaved(Placement const& placement, BlockList& blocks) noexcept;
  [[nodiscard]] bool placeScattered(Placement const& placement, BlockList& blocks) noexcept;
  void count(std::uint64_t nbytes, std::uint64_t requested) noexcept {
    counters_.allocations.increase(1);
    counters_.allocated_bytes.increase(static_cast<std::int64_t>(nbytes));
    counters_.requested_bytes.increase(static_cast<std::int64_t>(requested));
  }
  void findOnlyTensorRegion() noexcept;
  /// The region with the largest free block among those a request may use; null if none is free.
  [[nodiscard]] Region* roomiest(Placement const& placement) const noexcept;
  void undo(BlockList& blocks) noexcept;
  [[nodiscard]] bool wants(Placement const& placement, Region const& region) const noexcept;
  [[nodiscard]] bool fitsInDomain(Placement const& placement, DomainId domain) const noexcept;
  [[nodiscard]] std::uint64_t largestPossible(DomainId domain, MemoryType type) const noexcept;
  [[nodiscard]] std::vector<DomainId> lackingDomains(Placement const& placement) const;

  Engine* const owner_;
  Acquisition const acquisition_;
  RegionOrder const region_order_;
  std::uint32_t const max_regions_per_domain_;
  std::uint64_t const max_region_bytes_;
  std::vector<std::uint64_t> const fallback_sizes_;
  std::vector<std::uint64_t> const domain_capacity_;
  std::vector<GrowthPlan> layout_;                ///< upfront: one entry a region
  std::vector<std::unique_ptr<Region>> regions_;  ///< by id; null where a region was given back
  std::uint64_t times_emptied_ = 0;
  Region* only_tensor_region_ = nullptr;  ///< null if there are none or several
  /// A Stat in the making: each event writes one sum, and what is current follows.
  struct Counter {
    std::int64_t allocated = 0;  ///< since construction
    std::int64_t freed = 0;      ///< likewise
    std::int64_t peak = 0;
    std::int64_t allocated_before = 0;  ///< at the last reset
    std::int64_t freed_before = 0;      ///< likewise

    void increase(std::int64_t amount) noexcept {
      allocated += amount;
      if (current() > peak) peak = current();
    }
    void decrease(std::int64_t amount) noexcept { freed += amount; }
    [[nodiscard]] std::int64_t current() const noexcept { return allocated - freed; }
    [[nodiscard]] Stat stat() const noexcept {
      return {current(), peak, allocated - allocated_before, freed - freed_before};
    }
  };
  struct Counters {
    Counter allocations;
    Counter allocated_bytes;
    Counter requested_bytes;
    Counter regions;
    Counter reserved_bytes;
  } counters_;
};

}  // namespace flex::detail
