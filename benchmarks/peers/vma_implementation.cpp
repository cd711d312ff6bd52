// SPDX-License-Identifier: Apache-2.0
// The one place where the body of the header-only peer is compiled, with its host memory counted.

#include <atomic>
#include <cstdlib>

#include <malloc.h>

#include "peers/vma_peer.hpp"

namespace flexbench {
namespace {

std::atomic<std::uint64_t> host_bytes{0};

void* countedAllocate(std::size_t nbytes, std::size_t alignment) {
  std::size_t const least = alignment < alignof(void*) ? alignof(void*) : alignment;
  void* memory = nullptr;
  if (::posix_memalign(&memory, least, nbytes) != 0) return nullptr;
  host_bytes += ::malloc_usable_size(memory);
  return memory;
}

void countedFree(void* memory) {
  if (memory == nullptr) return;
  host_bytes -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

std::uint64_t vmaHostBytes() { return host_bytes; }

}  // namespace flexbench

#define VMA_SYSTEM_ALIGNED_MALLOC(size, alignment) flexbench::countedAllocate((size), (alignment))
#define VMA_SYSTEM_ALIGNED_FREE(pointer) flexbench::countedFree((pointer))
#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#include <vk_mem_alloc.h>
