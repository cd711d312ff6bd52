// SPDX-License-Identifier: Apache-2.0
#pragma once
// Vulkan Memory Allocator's virtual block: the same job, the same family of algorithm.

#include <cstdint>
#include <new>
#include <string_view>

#include <boost/thread/lock_guard.hpp>
#include <boost/thread/mutex.hpp>
#include <vk_mem_alloc.h>

#include "peers/peer.hpp"

namespace flexbench {

/// Host memory that all virtual blocks of the process hold.
std::uint64_t vmaHostBytes();

class Vma {
 public:
  struct Handle {
    VmaVirtualAllocation allocation = VK_NULL_HANDLE;
    std::uint64_t offset = 0;
    std::uint64_t nbytes = 0;
    [[nodiscard]] explicit operator bool() const noexcept { return allocation != VK_NULL_HANDLE; }
  };
  static constexpr std::string_view kName = "vma";
  static constexpr bool kSlow = false;
  static constexpr bool kThreadSafe = true;
  static constexpr bool kBounded = true;

  explicit Vma(PeerOptions options) {
    VmaVirtualBlockCreateInfo info{};
    info.size = roundUp(options.region_bytes);
    if (vmaCreateVirtualBlock(&info, &block_) != VK_SUCCESS) throw std::bad_alloc();
  }
  Vma(Vma const&) = delete;
  Vma& operator=(Vma const&) = delete;
  ~Vma() {
    vmaClearVirtualBlock(block_);
    vmaDestroyVirtualBlock(block_);
  }

  Handle allocate(std::uint64_t nbytes) {
    Handle handle;
    VmaVirtualAllocationCreateInfo info{};
    info.size = roundUp(nbytes);
    boost::lock_guard<boost::mutex> const lock(mutex_);
    if (vmaVirtualAllocate(block_, &info, &handle.allocation, &handle.offset) == VK_SUCCESS) {
      handle.nbytes = nbytes;
    }
    return handle;
  }
  Handle tryAllocate(std::uint64_t nbytes) { return allocate(nbytes); }
  void deallocate(Handle& handle) {
    boost::lock_guard<boost::mutex> const lock(mutex_);
    vmaVirtualFree(block_, handle.allocation);
    handle = {};
  }

  [[nodiscard]] std::uint64_t metadataBytes() const { return vmaHostBytes() - bytes_before_; }

 private:
  // Granules as ours, so that both have the same blocks to place.
  static std::uint64_t roundUp(std::uint64_t nbytes) { return (nbytes + 127) / 128 * 128; }

  std::uint64_t const bytes_before_ = vmaHostBytes();
  boost::mutex mutex_;
  VmaVirtualBlock block_ = VK_NULL_HANDLE;
};
static_assert(Peer<Vma>);

}  // namespace flexbench
