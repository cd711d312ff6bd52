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
  pushToBin(only, binFor(granules));
}

NodeIndex BlockIndex::takeNewNode() noexcept {
  if (high_water_ == nodes_.size() && !nodes_.tryGrow()) return 0;
  ++blocks_;
  return high_water_++;
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
