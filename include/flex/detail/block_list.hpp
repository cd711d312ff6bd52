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

/// Ordered blocks; one block needs no heap call, and no more room than two pointers. Move-only.
///
/// Thread-compatible: concurrent use of one object needs external locking.
class BlockList {
 public:
  BlockList() noexcept = default;
  /// One block.
  explicit BlockList(BlockHandle block) noexcept
      : where_{.region = block.region}, node_(block.node) {}
  BlockList(BlockList const&) = delete;
  BlockList& operator=(BlockList const&) = delete;
  BlockList(BlockList&& other) noexcept
      : where_(other.where_), node_(std::exchange(other.node_, 0)) {}
  BlockList& operator=(BlockList&& other) noexcept {
    std::swap(where_, other.where_);
    std::swap(node_, other.node_);
    return *this;
  }
  ~BlockList() {
    if (isMany()) delete where_.many;
  }

  /// Room for `capacity` blocks in all. Requires: new. Throws std::bad_alloc.
  void reserve(std::size_t capacity) {
    if (capacity <= 1) return;
    where_.many = new Many{std::make_unique<BlockHandle[]>(capacity)};
    node_ = kMany;
  }
  /// Requires: room.
  void append(BlockHandle block) noexcept {
    if (isMany()) {
      where_.many->blocks[where_.many->size++] = block;
    } else {
      where_.region = block.region;
      node_ = block.node;
    }
  }
  /// Keeps the room.
  void clear() noexcept {
    if (isMany()) {
      where_.many->size = 0;
    } else {
      node_ = 0;
    }
  }

  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::uint32_t size() const noexcept {
    return isMany() ? where_.many->size : static_cast<std::uint32_t>(node_ != 0);
  }
  [[nodiscard]] BlockHandle operator[](std::uint32_t index) const noexcept {
    return isMany() ? where_.many->blocks[index] : BlockHandle{where_.region, node_};
  }
  /// Whether there is room for more than one block.
  [[nodiscard]] bool isMany() const noexcept { return node_ == kMany; }

 private:
  /// In place of a node. No region has as many.
  static constexpr std::uint32_t kMany = 0xFFFF'FFFFU;

  struct Many {
    std::unique_ptr<BlockHandle[]> blocks;
    std::uint32_t size = 0;
  };

  union {
    Region* region;  ///< of the only block
    Many* many;      ///< owned
  } where_{nullptr};
  /// Of the only block; 0: none; or kMany. One word says it all: a second one beside it would be
  /// read together with it, and have to wait until both are written.
  std::uint32_t node_ = 0;
};

}  // namespace flex::detail
