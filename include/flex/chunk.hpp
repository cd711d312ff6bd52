// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block as its user sees it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <flex/device_memory.hpp>

namespace flex {

namespace detail {
class Region;

/// Where the allocator finds a block again. Opaque to users.
struct BlockHandle {
  Region* region = nullptr;
  std::uint32_t node = 0;
};
}  // namespace detail

/// One contiguous piece of device memory.
struct Chunk {
  DeviceAddress address = 0;  ///< region base + offset
  std::uint64_t offset = 0;   ///< bytes from the region's start, a multiple of kGranule
  std::uint64_t nbytes = 0;   ///< a multiple of kGranule
  std::uint32_t region = 0;   ///< region id
  DomainId domain = 0;
  detail::BlockHandle block;
};

/// Ordered chunks; one chunk needs no heap call. Move-only.
///
/// Thread-compatible: concurrent use of one object needs external locking.
class ChunkList {
 public:
  ChunkList() noexcept = default;
  ChunkList(ChunkList const&) = delete;
  ChunkList& operator=(ChunkList const&) = delete;
  ChunkList(ChunkList&& other) noexcept
      : single_(other.single_),
        many_(std::move(other.many_)),
        size_(std::exchange(other.size_, 0)) {}
  ChunkList& operator=(ChunkList&& other) noexcept {
    single_ = other.single_;
    many_ = std::move(other.many_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  ~ChunkList() = default;

  /// Room for `capacity` chunks in all. Requires: empty. Throws std::bad_alloc.
  void reserve(std::size_t capacity) {
    if (capacity > 1) many_ = std::make_unique<Chunk[]>(capacity);
  }
  /// Requires: room.
  void append(Chunk const& chunk) noexcept { storage()[size_++] = chunk; }
  void clear() noexcept { size_ = 0; }

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] Chunk const* begin() const noexcept { return many_ ? many_.get() : &single_; }
  [[nodiscard]] Chunk const* end() const noexcept { return begin() + size_; }

 private:
  [[nodiscard]] Chunk* storage() noexcept { return many_ ? many_.get() : &single_; }

  Chunk single_;
  std::unique_ptr<Chunk[]> many_;
  std::size_t size_ = 0;
};

}  // namespace flex
