// SPDX-License-Identifier: Apache-2.0
// A shared library of its own, which keeps jemalloc's malloc and free to itself.

#include "peers/jemalloc_peer.hpp"

#include <jemalloc/jemalloc.h>

namespace flexbench {

void* jemallocAllocate(std::size_t nbytes) noexcept { return mallocx(nbytes, 0); }

void jemallocDeallocate(void* pointer, std::size_t nbytes) noexcept {
  if (pointer != nullptr) sdallocx(pointer, nbytes, 0);
}

}  // namespace flexbench
