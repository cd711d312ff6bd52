// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstddef>
#include <limits>

#include <fmt/format.h>

#include <flex/detail/block_index.hpp>
#include <flex/error.hpp>

namespace flex::detail {
namespace {

void require(bool holds, char const* what, NodeIndex index) {
  if (!holds) throw InvariantViolation(fmt::format("block {}: {}", index, what));
}

}  // namespace

// Without a branch: sizes are random, so one would be guessed wrong every third time.
inline std::uint32_t BlockIndex::binFor(std::uint32_t size) noexcept {
  auto const shift =
      static_cast<std::uint32_t>(std::bit_width(size | kBinsPerDoubling)) - kMantissaBits - 1;
  return shift * kBinsPerDoubling + (size >> shift);
}

[[gnu::always_inline]] inline NodeIndex BlockIndex::takeSpareNode() noexcept {
  NodeIndex const index = spare_;
  if (index == 0) return takeNewNode();
  spare_ = nodes_[index].link_next;
  ++blocks_;
  return index;
}

NodeIndex BlockIndex::takeNewNode() noexcept {
  if (high_water_ == nodes_.size() && !nodes_.tryGrow()) return 0;
  ++blocks_;
  return high_water_++;
}

[[gnu::always_inline]] inline void BlockIndex::giveSpareNode(NodeIndex index) noexcept {
  --blocks_;
  nodes_[index].state = kSpareState;
  nodes_[index].link_next = spare_;
  spare_ = index;
}

[[gnu::always_inline]] inline void BlockIndex::pushToBin(NodeIndex index) noexcept {
  BlockNode& block = nodes_[index];
  std::uint32_t const bin = binFor(block.size);
  NodeIndex const head = bins_[bin];
  block.state = bin;
  block.link_next = head;
  block.link_previous = 0;
  nodes_[head].link_previous = index;  // harmless on the sentinel
  bins_[bin] = index;
  occupied_[bin / kBinsPerDoubling] |= 1U << (bin % kBinsPerDoubling);
  occupied_doublings_ |= 1U << (bin / kBinsPerDoubling);
}

// Without branches: whether a block is its bin's first, or only one, is random.
[[gnu::always_inline]] inline void BlockIndex::removeFromBin(NodeIndex index) noexcept {
  NodeIndex const next = nodes_[index].link_next;
  NodeIndex const previous = nodes_[index].link_previous;
  std::uint32_t const bin = nodes_[index].state;
  nodes_[next].link_previous = previous;
  nodes_[previous].link_next = next;  // the first one writes the sentinel's
  NodeIndex head = bins_[bin];
  head = head == index ? next : head;
  bins_[bin] = head;
  std::uint32_t& word = occupied_[bin / kBinsPerDoubling];
  word &= ~(static_cast<std::uint32_t>(head == 0) << (bin % kBinsPerDoubling));
  occupied_doublings_ &= ~(static_cast<std::uint32_t>(word == 0) << (bin / kBinsPerDoubling));
}

// Every granule could be a block of its own; two more nodes for the sentinel and a split in flight.
BlockIndex::BlockIndex(std::uint32_t granules)
    : nodes_(std::size_t{granules} + 2), granules_(granules), free_granules_(granules) {
  if (!nodes_.tryGrow()) throw std::bad_alloc();
  nodes_[kSentinel].state = kUsedState;
  NodeIndex const only = takeSpareNode();
  BlockNode& whole = nodes_[only];
  whole = BlockNode{};
  whole.size = granules;
  nodes_[kSentinel].next = only;
  pushToBin(only);
}

std::uint32_t BlockIndex::firstOccupiedBin(std::uint32_t from) const noexcept {
  if (from >= kBins) return kBins;
  std::uint32_t doubling = from / kBinsPerDoubling;
  std::uint32_t word = occupied_[doubling] & (~0U << (from % kBinsPerDoubling));
  if (word == 0) {
    // Shifting by 32 is undefined; the last doubling has nothing above it in any case.
    std::uint32_t const above = occupied_doublings_ & (~1U << doubling);
    if (above == 0) return kBins;
    doubling = static_cast<std::uint32_t>(std::countr_zero(above));
    word = occupied_[doubling];
  }
  return doubling * kBinsPerDoubling + static_cast<std::uint32_t>(std::countr_zero(word));
}

inline NodeIndex BlockIndex::find(std::uint32_t size) noexcept {
  if (size >= known_miss_) return 0;
  std::uint32_t const own_bin = binFor(size);
  NodeIndex candidate = bins_[own_bin];
  if (candidate != 0) {
    if (nodes_[candidate].size >= size) return candidate;
    candidate = nodes_[candidate].link_next;
    if (nodes_[candidate].size >= size) return candidate;  // the sentinel's is 0
  }
  std::uint32_t const bin = firstOccupiedBin(own_bin + 1);
  if (bin < kBins) return bins_[bin];
  for (; candidate != 0; candidate = nodes_[candidate].link_next) {
    if (nodes_[candidate].size >= size) return candidate;
  }
  known_miss_ = size;
  return 0;
}

NodeIndex BlockIndex::allocate(std::uint32_t granules) noexcept {
  NodeIndex const found = find(granules);
  if (found == 0) return 0;
  BlockNode& block = nodes_[found];
  if (block.size == granules) {
    removeFromBin(found);
    block.state = kUsedState;
    free_granules_ -= granules;
    return found;
  }
  NodeIndex const taken = takeSpareNode();
  if (taken == 0) return 0;
  removeFromBin(found);
  // The front becomes the new block, the free rest keeps its node.
  BlockNode& front = nodes_[taken];
  front.offset = block.offset;
  front.size = granules;
  front.previous = block.previous;
  front.next = found;
  front.state = kUsedState;
  nodes_[block.previous].next = taken;
  block.previous = taken;
  block.offset += granules;
  block.size -= granules;
  pushToBin(found);
  free_granules_ -= granules;
  return taken;
}

// A neighbour that is free takes the block in, and of two the lower one: so the nodes that are
// touched are those that had to be looked at in any case.
void BlockIndex::free(NodeIndex index) noexcept {
  BlockNode& block = nodes_[index];
  free_granules_ += block.size;
  known_miss_ = kNoMiss;
  NodeIndex const below = block.previous;
  NodeIndex const above = block.next;
  BlockNode& lower = nodes_[below];
  BlockNode& upper = nodes_[above];
  NodeIndex merged = index;
  if (isFree(upper)) {
    merged = above;
    removeFromBin(above);
    upper.offset = block.offset;
    upper.size += block.size;
    upper.previous = below;
    lower.next = above;
    giveSpareNode(index);
  }
  if (isFree(lower)) {
    BlockNode const& rest = nodes_[merged];
    removeFromBin(below);
    lower.size += rest.size;
    lower.next = rest.next;
    nodes_[rest.next].previous = below;
    giveSpareNode(merged);
    merged = below;
  }
  pushToBin(merged);
}

std::uint32_t BlockIndex::largestFree() const noexcept {
  if (occupied_doublings_ == 0) return 0;
  auto const doubling = static_cast<std::uint32_t>(std::bit_width(occupied_doublings_)) - 1;
  std::uint32_t const bin = doubling * kBinsPerDoubling +
                            static_cast<std::uint32_t>(std::bit_width(occupied_[doubling])) - 1;
  std::uint32_t largest = 0;
  for (NodeIndex index = bins_[bin]; index != 0; index = nodes_[index].link_next) {
    if (nodes_[index].size > largest) largest = nodes_[index].size;
  }
  return largest;
}

std::size_t BlockIndex::metadataBytes() const noexcept {
  return high_water_ * sizeof(BlockNode) + sizeof(*this);
}

void BlockIndex::checkInvariants() const {
  std::uint64_t expected_offset = 0;
  std::uint64_t free_sum = 0;
  std::uint32_t block_count = 0;
  std::uint32_t free_count = 0;
  NodeIndex below = 0;
  bool below_free = false;
  for (NodeIndex index = firstBlock(); index != 0; index = nodes_[index].next) {
    BlockNode const& block = nodes_[index];
    require(block.state != kSpareState, "a spare node is in the chain of blocks", index);
    require(block.previous == below, "the link to the block below is wrong", index);
    require(block.offset == expected_offset, "it does not start where the one below ends", index);
    require(block.size > 0, "it is empty", index);
    bool const is_free = block.state < kBins;
    require(!(is_free && below_free), "two neighbours are free", index);
    if (is_free) {
      require(block.state == binFor(block.size), "it is in the wrong bin", index);
      free_sum += block.size;
      ++free_count;
    }
    expected_offset += block.size;
    below = index;
    below_free = is_free;
    require(++block_count <= blocks_, "the chain is longer than the number of blocks", index);
  }
  require(expected_offset == granules_, "the blocks do not tile the region", below);
  require(free_sum == free_granules_, "the free bytes are miscounted", below);
  require(block_count == blocks_, "the blocks are miscounted", below);

  std::uint32_t binned = 0;
  for (std::uint32_t bin = 0; bin < kBins; ++bin) {
    bool const bit = (occupied_[bin / kBinsPerDoubling] >> (bin % kBinsPerDoubling) & 1U) != 0;
    require(bit == (bins_[bin] != 0), "a bin's bit is wrong", bins_[bin]);
    NodeIndex previous = 0;
    for (NodeIndex index = bins_[bin]; index != 0; index = nodes_[index].link_next) {
      require(nodes_[index].state == bin, "it is listed in a bin that is not its own", index);
      require(nodes_[index].link_previous == previous, "the bin's back link is wrong", index);
      require(++binned <= free_count, "the bins list more blocks than are free", index);
      previous = index;
    }
  }
  require(binned == free_count, "a free block is in no bin", 0);
  for (std::uint32_t doubling = 0; doubling < kDoublings; ++doubling) {
    bool const bit = (occupied_doublings_ >> doubling & 1U) != 0;
    require(bit == (occupied_[doubling] != 0), "a doubling's bit is wrong", 0);
  }
}

}  // namespace flex::detail
