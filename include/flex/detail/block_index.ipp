// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one allocate and one free of a block execute, to be inlined where they are called.

#include <bit>

#include <flex/detail/block_index.hpp>

namespace flex::detail {

// Without a branch: sizes are random, so one would be guessed wrong every third time.
inline std::uint32_t BlockIndex::binFor(std::uint32_t size) noexcept {
  auto const shift =
      static_cast<std::uint32_t>(std::bit_width(size | kBinsPerDoubling)) - kMantissaBits - 1;
  return shift * kBinsPerDoubling + (size >> shift);
}

inline NodeIndex BlockIndex::takeSpareNode() noexcept {
  NodeIndex const index = spare_;
  if (index == 0) return takeNewNode();
  spare_ = nodes_[index].link_next;
  ++blocks_;
  return index;
}

inline void BlockIndex::giveSpareNode(NodeIndex index) noexcept {
  --blocks_;
  nodes_[index].state = kSpareState;
  nodes_[index].link_next = spare_;
  spare_ = index;
}

inline void BlockIndex::pushToBin(NodeIndex index, std::uint32_t bin) noexcept {
  BlockNode& block = nodes_[index];
  NodeIndex const head = bins_[bin];
  block.state = bin;
  block.link_next = head;
  block.link_previous = 0;
  nodes_[head].link_previous = index;  // harmless on the sentinel
  bins_[bin] = index;
  occupied_[bin / kBinsPerDoubling] |= 1U << (bin % kBinsPerDoubling);
  occupied_doublings_ |= 1U << (bin / kBinsPerDoubling);
}

// Without a branch on whether the block is its bin's first one: that is random.
inline void BlockIndex::removeFromBin(NodeIndex index) noexcept {
  NodeIndex const next = nodes_[index].link_next;
  NodeIndex const previous = nodes_[index].link_previous;
  std::uint32_t const bin = nodes_[index].state;
  nodes_[next].link_previous = previous;
  nodes_[previous].link_next = next;  // the first one writes the sentinel's
  NodeIndex head = bins_[bin];
  head = head == index ? next : head;
  bins_[bin] = head;
  if (head != 0) return;
  std::uint32_t& word = occupied_[bin / kBinsPerDoubling];
  word &= ~(1U << (bin % kBinsPerDoubling));
  if (word == 0) occupied_doublings_ &= ~(1U << (bin / kBinsPerDoubling));
}

// The rest of a large block often stays where it is.
inline void BlockIndex::moveToRightBin(NodeIndex index) noexcept {
  std::uint32_t const bin = binFor(nodes_[index].size);
  if (nodes_[index].state == bin) return;
  removeFromBin(index);
  pushToBin(index, bin);
}

inline std::uint32_t BlockIndex::firstOccupiedBin(std::uint32_t from) const noexcept {
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

inline NodeIndex BlockIndex::allocate(std::uint32_t granules) noexcept {
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
  moveToRightBin(found);
  free_granules_ -= granules;
  return taken;
}

// A neighbour that is free takes the block in, and of two the lower one: so the nodes that are
// touched are those that had to be looked at in any case.
inline void BlockIndex::free(NodeIndex index) noexcept {
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
    upper.offset = block.offset;
    upper.size += block.size;
    upper.previous = below;
    lower.next = above;
    giveSpareNode(index);
  }
  if (isFree(lower)) {
    BlockNode const& rest = nodes_[merged];
    if (merged != index) removeFromBin(merged);
    lower.size += rest.size;
    lower.next = rest.next;
    nodes_[rest.next].previous = below;
    giveSpareNode(merged);
    merged = below;
  }
  if (merged == index) {
    pushToBin(index, binFor(block.size));
  } else {
    moveToRightBin(merged);
  }
}

}  // namespace flex::detail
