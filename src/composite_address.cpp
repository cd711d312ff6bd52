// SPDX-License-Identifier: Apache-2.0
#include <flex/bytes.hpp>
#include <flex/composite_address.hpp>
#include <flex/detail/engine.hpp>

namespace flex {

void CompositeAddress::giveBack() noexcept {
  blocks_[0].region->owner->giveBack(std::move(blocks_));
}

// Offset, size and user word of a used block change only with its owner, who is us.
Chunk CompositeAddress::describe(detail::BlockHandle block) const noexcept {
  detail::BlockNode const& node = block.region->index.node(block.node);
  std::uint64_t const offset = node.offset * kGranule;
  return {.address = block.region->where.base + offset,
          .offset = offset,
          .nbytes = node.size * kGranule,
          .region = block.region->id,
          .domain = block.region->where.domain};
}

DeviceAddress CompositeAddress::address() const noexcept {
  return blocks_.empty() ? 0 : describe(blocks_[0]).address;
}

std::uint64_t CompositeAddress::reservedBytes() const noexcept {
  std::uint64_t nbytes = 0;
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) nbytes += describe(blocks_[i]).nbytes;
  return nbytes;
}

std::uint64_t CompositeAddress::nbytes() const noexcept {
  if (blocks_.empty()) return 0;
  detail::BlockHandle const first = blocks_[0];
  return reservedBytes() -
         detail::BlockUse::unpack(first.region->index.node(first.node).user).slack;
}

std::vector<Chunk> CompositeAddress::chunks() const {
  std::vector<Chunk> chunks;
  chunks.reserve(blocks_.size());
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) chunks.push_back(describe(blocks_[i]));
  return chunks;
}

}  // namespace flex
