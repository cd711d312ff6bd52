// SPDX-License-Identifier: Apache-2.0
#pragma once
// Boost.Interprocess's best fit: a red-black tree inside the managed memory.

#include <cstdint>
#include <new>
#include <string_view>

#include <boost/interprocess/managed_external_buffer.hpp>
#include <boost/thread/lock_guard.hpp>
#include <boost/thread/mutex.hpp>

#include "peers/address_range.hpp"
#include "peers/peer.hpp"

namespace flexbench {

class InterprocessBestFit {
 public:
  using Handle = PointerHandle;
  static constexpr std::string_view kName = "boost-best-fit";
  static constexpr bool kSlow = true;
  static constexpr bool kThreadSafe = true;
  static constexpr bool kBounded = true;

  explicit InterprocessBestFit(PeerOptions options)
      : range_(options.region_bytes),
        buffer_(boost::interprocess::create_only, range_.begin(), range_.nbytes()) {}

  Handle allocate(std::uint64_t nbytes) {
    boost::lock_guard<boost::mutex> const lock(mutex_);
    return {buffer_.allocate(nbytes, std::nothrow), nbytes};
  }
  Handle tryAllocate(std::uint64_t nbytes) { return allocate(nbytes); }
  void deallocate(Handle& handle) {
    boost::lock_guard<boost::mutex> const lock(mutex_);
    buffer_.deallocate(handle.pointer);
    handle = {};
  }

 private:
  using Buffer = boost::interprocess::basic_managed_external_buffer<
      char, boost::interprocess::rbtree_best_fit<boost::interprocess::null_mutex_family>,
      boost::interprocess::iset_index>;

  boost::mutex mutex_;
  AddressRange range_;
  Buffer buffer_;
};
static_assert(Peer<InterprocessBestFit>);

}  // namespace flexbench
