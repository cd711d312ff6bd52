// SPDX-License-Identifier: Apache-2.0
#pragma once
// An array that grows and never moves.

#include <cstddef>
#include <new>
#include <type_traits>

namespace flex::detail {

/// A huge page of the host. Elements that lie close in time lie anywhere in the array, so a large
/// one on small pages would miss the processor's table of pages nearly always.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20U;
/// Arrays that may become at least this large are laid on huge pages, if the host has any.
inline constexpr std::size_t kHugeArray = 32 * kHugePage;

/// Reserves host address space, without committing memory to it. Throws std::bad_alloc.
[[nodiscard]] void* reserveAddressSpace(std::size_t nbytes);
/// Makes a part of a reservation usable (zeroed, paid for when touched). False: no memory for it.
[[nodiscard]] bool commitAddressSpace(void* begin, std::size_t nbytes) noexcept;
void releaseAddressSpace(void* begin, std::size_t nbytes) noexcept;

/// Growing never moves an element, so a thread without the mutex may write into an element that it
/// owns, and no single operation pays for a copy. Elements start out as zero bytes.
///
/// Thread-compatible: concurrent use of one object needs external locking; distinct elements may be
/// used from distinct threads.
template <class T>
requires std::is_trivial_v<T>
class StableArray {
 public:
  /// Reserves room for `max_size` elements. Throws std::bad_alloc.
  explicit StableArray(std::size_t max_size)
      : elements_(static_cast<T*>(reserveAddressSpace(max_size * sizeof(T)))),
        max_size_(max_size) {}
  StableArray(StableArray const&) = delete;
  StableArray& operator=(StableArray const&) = delete;
  ~StableArray() { releaseAddressSpace(elements_, max_size_ * sizeof(T)); }

  /// Makes room for at least one more element. False: the limit or the host's memory is reached.
  [[nodiscard]] bool tryGrow() noexcept {
    if (size_ == max_size_) return false;
    std::size_t const wanted = size_ == 0 ? firstStep() : 2 * size_;
    std::size_t const grown = wanted < max_size_ ? wanted : max_size_;
    if (!commitAddressSpace(elements_, grown * sizeof(T))) return false;
    size_ = grown;
    return true;
  }

  [[nodiscard]] T& operator[](std::size_t index) noexcept { return elements_[index]; }
  [[nodiscard]] T const& operator[](std::size_t index) const noexcept { return elements_[index]; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  [[nodiscard]] std::size_t firstStep() const noexcept {
    return (max_size_ * sizeof(T) < kHugeArray ? kHugePage / 32 : kHugePage) / sizeof(T);
  }

  T* elements_;
  std::size_t max_size_;
  std::size_t size_ = 0;
};

}  // namespace flex::detail
