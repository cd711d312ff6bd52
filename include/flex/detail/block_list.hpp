// SPDX-License-Identifier: Apache-2.0
#pragma once
// The blocks of one allocation, as the allocator finds them again.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace flex::detail {

class Region;

/// A used block. 0 is no block.
struct BlockHandle {
  Region* region = nullptr;
  std::uint32_t node = 0;

  [[nodiscard]] explicit operator bool() const noexcept { return node != 0; }
};

/// Ordered blocks; one block needs no heap call, and no more room than a pointer and a half.
/// Move-only.
///
/// Thread-compatible: concurrent use of one object needs external locking.
class BlockList {
 public:
  BlockList() noexcept = default;
  /// One block.
  explicit BlockList(BlockHandle block) noexcept
      : region_(block.region), node_(block.node), size_(1) {}
  BlockList(BlockList const&) = delete;
  BlockList& operator=(BlockList const&) = delete;
  BlockList(BlockList&& other) noexcept
      : region_(other.region_),
        node_(other.node_),
        size_(std::exchange(other.size_, 0)),
        many_(std::move(other.many_)) {}
  BlockList& operator=(BlockList&& other) noexcept {
    region_ = other.region_;
    node_ = other.node_;
    size_ = std::exchange(other.size_, 0);
    many_ = std::move(other.many_);
    return *this;
  }
  ~BlockList() = default;

  /// Room for `capacity` blocks in all. Requires: empty. Throws std::bad_alloc.
  void reserve(std::size_t capacity) {
    if (capacity > 1) many_ = std::make_unique<BlockHandle[]>(capacity);
  }
  /// Requires: room.
  void append(BlockHandle block) noexcept {
    if (many_ != nullptr) {
      many_[size_] = block;
    } else {
      region_ = block.region;
      node_ = block.node;
    }
    ++size_;
  }
  void clear() noexcept { size_ = 0; }

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] BlockHandle operator[](std::uint32_t index) const noexcept {
    return many_ != nullptr ? many_[index] : BlockHandle{region_, node_};
  }

 private:
  Region* region_ = nullptr;  ///< of the only block, unless there is room for many
  std::uint32_t node_ = 0;
  std::uint32_t size_ = 0;
  std::unique_ptr<BlockHandle[]> many_;
};

}  // namespace flex::detail
