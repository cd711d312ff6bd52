// SPDX-License-Identifier: Apache-2.0
#pragma once
// jemalloc beside the process's own malloc, not in its place; it locks by itself.

#include <cstdint>
#include <string_view>

#include "peers/address_range.hpp"
#include "peers/peer.hpp"

namespace flexbench {

void* jemallocAllocate(std::size_t nbytes) noexcept;
void jemallocDeallocate(void* pointer, std::size_t nbytes) noexcept;

class Jemalloc {
 public:
  using Handle = PointerHandle;
  static constexpr std::string_view kName = "jemalloc";
  static constexpr bool kSlow = true;
  static constexpr bool kThreadSafe = true;
  static constexpr bool kBounded = false;

  explicit Jemalloc(PeerOptions /*options*/) {}

  Handle allocate(std::uint64_t nbytes) { return {jemallocAllocate(nbytes), nbytes}; }
  Handle tryAllocate(std::uint64_t nbytes) { return allocate(nbytes); }
  void deallocate(Handle& handle) {
    jemallocDeallocate(handle.pointer, handle.nbytes);
    handle = {};
  }
};
static_assert(Peer<Jemalloc>);

}  // namespace flexbench
