// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <flex/detail/stable_array.hpp>

namespace flex::detail {

void* reserveAddressSpace(std::size_t nbytes) {
  void* const begin =
      ::mmap(nullptr, nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  return begin;
}

bool commitAddressSpace(void* begin, std::size_t nbytes) noexcept {
  return ::mprotect(begin, nbytes, PROT_READ | PROT_WRITE) == 0;
}

void releaseAddressSpace(void* begin, std::size_t nbytes) noexcept { ::munmap(begin, nbytes); }

}  // namespace flex::detail
