// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ownership of device memory.

#include <span>
#include <utility>

#include <flex/chunk.hpp>

namespace flex {

namespace detail {
class Engine;
class Request;
}  // namespace detail

/// Owns the chunks of one allocation, in order; gives them back when destroyed. Move-only.
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
  CompositeAddress(CompositeAddress&& other) noexcept
      : engine_(std::exchange(other.engine_, nullptr)),
        requested_(std::exchange(other.requested_, 0)),
        chunks_(std::move(other.chunks_)) {}
  CompositeAddress& operator=(CompositeAddress&& other) noexcept {
    if (this != &other) {
      reset();
      engine_ = std::exchange(other.engine_, nullptr);
      requested_ = std::exchange(other.requested_, 0);
      chunks_ = std::move(other.chunks_);
    }
    return *this;
  }
  ~CompositeAddress() { reset(); }

  /// Gives the memory back now; afterwards this owns nothing. Never blocks.
  void reset() noexcept;

  [[nodiscard]] explicit operator bool() const noexcept { return engine_ != nullptr; }

  /// Device address of the first chunk; 0 if this owns nothing.
  [[nodiscard]] DeviceAddress address() const noexcept {
    return chunks_.empty() ? 0 : chunks_.begin()->address;
  }
  /// Bytes that were asked for.
  [[nodiscard]] std::uint64_t nbytes() const noexcept { return requested_; }
  [[nodiscard]] std::span<Chunk const> chunks() const noexcept {
    return {chunks_.begin(), chunks_.size()};
  }

 private:
  friend class detail::Engine;
  friend class detail::Request;

  CompositeAddress(detail::Engine& engine, std::uint64_t requested, ChunkList&& chunks) noexcept
      : engine_(&engine), requested_(requested), chunks_(std::move(chunks)) {}

  detail::Engine* engine_ = nullptr;
  std::uint64_t requested_ = 0;
  ChunkList chunks_;
};

}  // namespace flex
