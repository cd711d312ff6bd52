// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <sys/mman.h>

#include <flex/detail/stable_array.hpp>

namespace flex::detail {
namespace {

bool isHuge(std::size_t nbytes) noexcept { return nbytes >= kHugeArray; }

std::size_t roundUpToHugePage(std::size_t nbytes) noexcept {
  return (nbytes + kHugePage - 1) / kHugePage * kHugePage;
}

void* reserve(std::size_t nbytes) {
  void* const begin =
      ::mmap(nullptr, nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  return begin;
}

}  // namespace

void* reserveAddressSpace(std::size_t nbytes) {
  if (!isHuge(nbytes)) return reserve(nbytes);
  std::size_t const rounded = roundUpToHugePage(nbytes);
  // One page more, to cut out what starts where a huge page does.
  auto* const whole = static_cast<char*>(reserve(rounded + kHugePage));
  std::size_t const before = roundUpToHugePage(reinterpret_cast<std::uintptr_t>(whole)) -
                             reinterpret_cast<std::uintptr_t>(whole);
  char* const begin = whole + before;
  if (before != 0) ::munmap(whole, before);
  ::munmap(begin + rounded, kHugePage - before);
  ::madvise(begin, rounded, MADV_HUGEPAGE);  // only advice
  return begin;
}

bool commitAddressSpace(void* begin, std::size_t nbytes) noexcept {
  return ::mprotect(begin, nbytes, PROT_READ | PROT_WRITE) == 0;
}

void releaseAddressSpace(void* begin, std::size_t nbytes) noexcept {
  ::munmap(begin, isHuge(nbytes) ? roundUpToHugePage(nbytes) : nbytes);
}

}  // namespace flex::detail
