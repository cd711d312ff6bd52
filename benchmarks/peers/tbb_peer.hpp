// SPDX-License-Identifier: Apache-2.0
#pragma once
// oneTBB's pool over a fixed piece of memory; it locks by itself.

#include <cstdint>
#include <string_view>

#define TBB_PREVIEW_MEMORY_POOL 1
#include <oneapi/tbb/memory_pool.h>

#include "peers/address_range.hpp"
#include "peers/peer.hpp"

namespace flexbench {

class TbbFixedPool {
 public:
  using Handle = PointerHandle;
  static constexpr std::string_view kName = "tbb-fixed-pool";
  static constexpr bool kSlow = true;
  static constexpr bool kThreadSafe = true;
  static constexpr bool kBounded = true;

  explicit TbbFixedPool(PeerOptions options)
      : range_(options.region_bytes), pool_(range_.begin(), range_.nbytes()) {}

  Handle allocate(std::uint64_t nbytes) { return {pool_.malloc(nbytes), nbytes}; }
  Handle tryAllocate(std::uint64_t nbytes) { return allocate(nbytes); }
  void deallocate(Handle& handle) {
    pool_.free(handle.pointer);
    handle = {};
  }

 private:
  AddressRange range_;
  tbb::fixed_pool pool_;
};
static_assert(Peer<TbbFixedPool>);

}  // namespace flexbench
