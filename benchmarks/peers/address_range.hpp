// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory for peers that keep their bookkeeping inside what they manage.

#include <cstddef>
#include <cstdint>
#include <new>

#include <sys/mman.h>

namespace flexbench {

/// Address space that costs what is touched of it.
class AddressRange {
 public:
  explicit AddressRange(std::uint64_t nbytes)
      : nbytes_(nbytes),
        begin_(::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (begin_ == MAP_FAILED) throw std::bad_alloc();
    // A page for every block that is touched, not a huge one.
    ::madvise(begin_, nbytes, MADV_NOHUGEPAGE);
  }
  AddressRange(AddressRange const&) = delete;
  AddressRange& operator=(AddressRange const&) = delete;
  ~AddressRange() { ::munmap(begin_, nbytes_); }

  [[nodiscard]] void* begin() const noexcept { return begin_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }

 private:
  std::size_t nbytes_;
  void* begin_;
};

/// Handle of peers that hand out pointers.
struct PointerHandle {
  void* pointer = nullptr;
  std::uint64_t nbytes = 0;
  [[nodiscard]] explicit operator bool() const noexcept { return pointer != nullptr; }
};

}  // namespace flexbench
