// SPDX-License-Identifier: Apache-2.0
#pragma once
// How free space inside one region is found.

#include <array>
#include <cstdint>

#include <flex/detail/stable_array.hpp>

namespace flex::detail {

/// Index of a block's node. 0 is no block.
using NodeIndex = std::uint32_t;

/// One block, used or free. 32 bytes, so that two share a cache line and none straddles one.
struct BlockNode {
  std::uint32_t offset;  ///< granules from the region's start
  std::uint32_t size;    ///< granules
  NodeIndex previous;    ///< neighbour below, 0 at the region's start
  NodeIndex next;        ///< neighbour above, 0 at the region's end
  /// Free: neighbours in the bin's list. Used: a link for whoever owns the block (DeferredFrees).
  std::uint32_t link_next;
  std::uint32_t link_previous;
  std::uint32_t state;  ///< a bin while free, else one of the k...State constants
  std::uint32_t user;   ///< the owner's, from allocate() to free(): untouched here
};

inline constexpr std::uint32_t kUsedState = 0xFFFF'FFFFU;
inline constexpr std::uint32_t kSpareState = 0xFFFF'FFFEU;  ///< the node describes no block

/// Two-level segregated fit (Masmano et al., 2004) over granules, with all bookkeeping outside the
/// managed memory and 32-bit indices for links.
///
/// A bin holds the free blocks of one size class: classes are exact below 32 granules, then 32 to a
/// doubling. A request takes a fitting block among the first two of its own class, else the first
/// of the next class that has any, else whatever fits in its own class: so it fails only if nothing
/// fits, and its cost does not depend on how many blocks are used.
///
/// Thread-compatible: concurrent use of one object needs external locking.
class BlockIndex {
 public:
  /// One free block of `granules` (> 0). Throws std::bad_alloc.
  explicit BlockIndex(std::uint32_t granules);

  /// A used block of exactly `granules` (> 0), or 0: nothing fits, or no host memory for its node.
  [[nodiscard, gnu::always_inline]] NodeIndex allocate(std::uint32_t granules) noexcept;

  /// Makes a used block free and merges it with free neighbours at once.
  [[gnu::always_inline]] void free(NodeIndex index) noexcept;

  [[nodiscard]] BlockNode& node(NodeIndex index) noexcept { return nodes_[index]; }
  [[nodiscard]] BlockNode const& node(NodeIndex index) const noexcept { return nodes_[index]; }

  /// Starts to bring a block's node into the cache.
  void prefetch(NodeIndex index) const noexcept { __builtin_prefetch(&nodes_[index], 1); }

  [[nodiscard]] std::uint32_t freeGranules() const noexcept { return free_granules_; }
  [[nodiscard]] std::uint32_t granules() const noexcept { return granules_; }
  [[nodiscard]] bool empty() const noexcept { return free_granules_ == granules_; }
  /// Granules of the largest free block. Cost: the blocks of the highest occupied bin.
  [[nodiscard]] std::uint32_t largestFree() const noexcept;
  [[nodiscard]] std::uint32_t blockCount() const noexcept { return blocks_; }
  /// Host memory that the blocks have needed so far, and the fixed tables.
  [[nodiscard]] std::size_t metadataBytes() const noexcept;
  /// The block at the region's start; follow `next` from there.
  [[nodiscard]] NodeIndex firstBlock() const noexcept { return nodes_[kSentinel].next; }

  /// Throws InvariantViolation: blocks tile the region, no two neighbours are free, bins and
  /// bitmaps hold exactly the free blocks, counters equal what a walk finds. Cost: a walk.
  void checkInvariants() const;

 private:
  /// Stands where a block has no neighbour, or none before it in its bin: never merges, and may be
  /// written to, so that no link needs a null check. Its `next` is the region's first block.
  static constexpr NodeIndex kSentinel = 0;
  static constexpr std::uint32_t kMantissaBits = 5;
  static constexpr std::uint32_t kBinsPerDoubling = 1U << kMantissaBits;
  static constexpr std::uint32_t kDoublings = 28;
  static constexpr std::uint32_t kBins = kBinsPerDoubling * kDoublings;
  static constexpr std::uint32_t kNoMiss = 0xFFFF'FFFFU;

  [[nodiscard]] static bool isFree(BlockNode const& block) noexcept { return block.state < kBins; }
  [[nodiscard]] static std::uint32_t binFor(std::uint32_t size) noexcept;
  [[nodiscard]] std::uint32_t firstOccupiedBin(std::uint32_t from) const noexcept;
  [[nodiscard, gnu::always_inline]] NodeIndex find(std::uint32_t size) noexcept;
  [[nodiscard, gnu::always_inline]] NodeIndex takeSpareNode() noexcept;
  [[nodiscard]] NodeIndex takeNewNode() noexcept;
  [[gnu::always_inline]] void giveSpareNode(NodeIndex index) noexcept;
  [[gnu::always_inline]] void pushToBin(NodeIndex index, std::uint32_t bin) noexcept;
  [[gnu::always_inline]] void removeFromBin(NodeIndex index) noexcept;
  [[gnu::always_inline]] void moveToRightBin(NodeIndex index) noexcept;

  StableArray<BlockNode> nodes_;
  std::array<NodeIndex, kBins> bins_{};
  std::array<std::uint32_t, kDoublings> occupied_{};  ///< one bit a bin
  std::uint32_t occupied_doublings_ = 0;              ///< one bit a word of occupied_
  NodeIndex spare_ = 0;                               ///< list of spare nodes, through link_next
  std::uint32_t high_water_ = 1;                      ///< nodes ever used, with the sentinel
  std::uint32_t blocks_ = 0;
  std::uint32_t granules_;
  std::uint32_t free_granules_;
  /// Smallest size known not to fit; forgotten when anything is freed. Keeps a row of failing
  /// requests from walking their bin again and again.
  std::uint32_t known_miss_ = kNoMiss;
};

}  // namespace flex::detail

#include <flex/detail/block_index.ipp>
