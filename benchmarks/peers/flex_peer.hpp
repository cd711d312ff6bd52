// SPDX-License-Identifier: Apache-2.0
#pragma once
// This library, through its public interface.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <flex/flex_allocator.hpp>
#include <flex/offset_device.hpp>

#include "peers/peer.hpp"

namespace flexbench {

inline flex::AllocatorOptions oneRegion() {
  flex::AllocatorOptions options;
  options.regions = 1;
  options.max_region_bytes = std::numeric_limits<std::uint64_t>::max();
  return options;
}

template <class Strategy>
class FlexPeer {
 public:
  using Handle = flex::CompositeAddress;
  static constexpr bool kSlow = false;
  static constexpr bool kThreadSafe = true;
  static constexpr bool kBounded = true;

  explicit FlexPeer(PeerOptions options)
      : allocator_(
            std::make_shared<flex::OffsetDevice>(flex::roundUpToGranule(options.region_bytes)),
            oneRegion()) {}

  Handle allocate(std::uint64_t nbytes) { return allocator_.allocate(nbytes); }
  Handle tryAllocate(std::uint64_t nbytes) {
    std::optional<Handle> handle = allocator_.tryAllocate(nbytes);
    return handle ? std::move(*handle) : Handle{};
  }
  void deallocate(Handle& handle) { allocator_.deallocate(std::move(handle)); }

  [[nodiscard]] std::uint64_t metadataBytes() const {
    return allocator_.statistics().metadata_bytes;
  }

 private:
  flex::FlexAllocator<Strategy> allocator_;
};

struct FlexHold : FlexPeer<flex::HoldMutexDuringCallback> {
  static constexpr std::string_view kName = "flex-hold";
  using FlexPeer::FlexPeer;
};
struct FlexRelease : FlexPeer<flex::ReleaseAndCondvar> {
  static constexpr std::string_view kName = "flex-release";
  using FlexPeer::FlexPeer;
};
static_assert(Peer<FlexHold> && Peer<FlexRelease>);

}  // namespace flexbench
