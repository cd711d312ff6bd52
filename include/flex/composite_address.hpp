// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ownership of device memory.

#include <cstdint>
#include <utility>
#include <vector>

#include <flex/chunk.hpp>
#include <flex/detail/block_list.hpp>

namespace flex {

namespace detail {
class Engine;
class Request;
}  // namespace detail

/// Owns the chunks of one allocation, in order; gives them back when destroyed. Move-only, 16
/// bytes.
///
/// Freeing never waits and never fails: it may happen in a finalizer, in a callback, under a lock
/// of the caller, on any thread, and after the allocator itself was destroyed.
///
/// Thread-compatible: concurrent use of one object needs external locking.
class CompositeAddress {
 public:
  /// Owns nothing.
  CompositeAddress() noexcept = default;
  CompositeAddress(CompositeAddress const&) = delete;
  CompositeAddress& operator=(CompositeAddress const&) = delete;
  CompositeAddress(CompositeAddress&& other) noexcept = default;
  CompositeAddress& operator=(CompositeAddress&& other) noexcept {
    detail::BlockList taken(std::move(other.blocks_));
    reset();
    blocks_ = std::move(taken);
    return *this;
  }
  ~CompositeAddress() { reset(); }

  /// Gives the memory back now; afterwards this owns nothing. Never blocks.
  void reset() noexcept {
    if (!blocks_.empty()) giveBack();
  }

  [[nodiscard]] explicit operator bool() const noexcept { return !blocks_.empty(); }

  /// Device address of the first chunk; 0 if this owns nothing.
  [[nodiscard]] DeviceAddress address() const noexcept;
  /// Bytes that were asked for; 0 if this owns nothing.
  [[nodiscard]] std::uint64_t nbytes() const noexcept;
  /// Bytes of the blocks: nbytes() rounded up to the granule; 0 if this owns nothing.
  [[nodiscard]] std::uint64_t reservedBytes() const noexcept;
  [[nodiscard]] std::size_t chunkCount() const noexcept { return blocks_.size(); }
  /// A description of the chunks, in order. Throws std::bad_alloc.
  [[nodiscard]] std::vector<Chunk> chunks() const;

 private:
  friend class detail::Engine;
  friend class detail::Request;

  explicit CompositeAddress(detail::BlockList&& blocks) noexcept : blocks_(std::move(blocks)) {}
  explicit CompositeAddress(detail::BlockHandle block) noexcept : blocks_(block) {}

  void giveBack() noexcept;
  [[nodiscard]] Chunk describe(detail::BlockHandle block) const noexcept;

  detail::BlockList blocks_;
};

}  // namespace flex
