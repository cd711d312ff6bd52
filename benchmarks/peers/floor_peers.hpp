// SPDX-License-Identifier: Apache-2.0
#pragma once
// Floors: what the works cost by themselves, and what locking costs by itself.

#include <cstdint>
#include <string_view>

#include <boost/thread/lock_guard.hpp>
#include <boost/thread/mutex.hpp>

#include "peers/peer.hpp"

namespace flexbench {

struct BumpHandle {
  std::uint64_t address = 0;
  std::uint64_t nbytes = 0;
  [[nodiscard]] explicit operator bool() const noexcept { return address != 0; }
};

/// Never reuses anything: the cost of the loop and of its tables.
class Bump {
 public:
  using Handle = BumpHandle;
  static constexpr std::string_view kName = "bump";
  static constexpr bool kSlow = false;
  static constexpr bool kThreadSafe = false;
  static constexpr bool kBounded = false;

  explicit Bump(PeerOptions /*options*/) {}

  Handle allocate(std::uint64_t nbytes) { return {next_ += 128, nbytes}; }
  Handle tryAllocate(std::uint64_t nbytes) { return allocate(nbytes); }
  void deallocate(Handle& handle) { handle = {}; }

 private:
  std::uint64_t next_ = 0;
};

/// The same with two lock and unlock pairs: what any allocator behind one mutex costs at least.
class LockedBump {
 public:
  using Handle = BumpHandle;
  static constexpr std::string_view kName = "lock-floor";
  static constexpr bool kSlow = false;
  static constexpr bool kThreadSafe = true;
  static constexpr bool kBounded = false;

  explicit LockedBump(PeerOptions options) : bump_(options) {}

  Handle allocate(std::uint64_t nbytes) {
    boost::lock_guard<boost::mutex> const lock(mutex_);
    return bump_.allocate(nbytes);
  }
  Handle tryAllocate(std::uint64_t nbytes) { return allocate(nbytes); }
  void deallocate(Handle& handle) {
    boost::lock_guard<boost::mutex> const lock(mutex_);
    bump_.deallocate(handle);
  }

 private:
  boost::mutex mutex_;
  Bump bump_;
};
static_assert(Peer<Bump> && Peer<LockedBump>);

}  // namespace flexbench
