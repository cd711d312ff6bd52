// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the works ask of an allocator, whoever wrote it.

#include <concepts>
#include <cstdint>
#include <string_view>

namespace flexbench {

struct PeerOptions {
  std::uint64_t region_bytes;  ///< what the blocks are carved from
};

/// A block as its user keeps it: what is needed to use it and to free it. Every peer's handle lies
/// in the work's table itself, not behind a pointer. Empty if nothing was allocated.
template <class H>
concept PeerHandle = std::movable<H> && std::default_initializable<H> && requires(H const& handle) {
  {static_cast<bool>(handle)};
};

/// An adapter: the peer's own calls under two names, and a lock around them where the peer has
/// none.
///
/// Thread-safe: any member may be called from any thread at any time (unless kThreadSafe is false).
template <class P>
concept Peer = PeerHandle<typename P::Handle> && std::constructible_from<P, PeerOptions> &&
    requires(P& peer, typename P::Handle& handle, std::uint64_t nbytes) {
  { P::kName } -> std::convertible_to<std::string_view>;
  /// Thousands of nanoseconds a pair: the works do fewer of them.
  { P::kSlow } -> std::convertible_to<bool>;
  { P::kThreadSafe } -> std::convertible_to<bool>;
  /// Has a region that can run full.
  { P::kBounded } -> std::convertible_to<bool>;
  /// For requests that are known to fit.
  { peer.allocate(nbytes) } -> std::same_as<typename P::Handle>;
  /// For requests that may not: empty if nothing fits.
  { peer.tryAllocate(nbytes) } -> std::same_as<typename P::Handle>;
  peer.deallocate(handle);
};

}  // namespace flexbench
