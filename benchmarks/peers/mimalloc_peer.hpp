// SPDX-License-Identifier: Apache-2.0
#pragma once
// mimalloc beside the process's own malloc, not in its place; it locks by itself.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <dlfcn.h>

#include "peers/address_range.hpp"
#include "peers/peer.hpp"

namespace flexbench {

class Mimalloc {
 public:
  using Handle = PointerHandle;
  static constexpr std::string_view kName = "mimalloc";
  static constexpr bool kSlow = true;
  static constexpr bool kThreadSafe = true;
  static constexpr bool kBounded = false;

  explicit Mimalloc(PeerOptions /*options*/) {}

  Handle allocate(std::uint64_t nbytes) { return {library().allocate(nbytes), nbytes}; }
  Handle tryAllocate(std::uint64_t nbytes) { return allocate(nbytes); }
  void deallocate(Handle& handle) {
    library().deallocate(handle.pointer);
    handle = {};
  }

 private:
  // The library also defines malloc and free, so linking it would replace the process's own.
  struct Library {
    void* (*allocate)(std::size_t);
    void (*deallocate)(void*);
  };
  static Library const& library() {
    static Library const loaded = [] {
      void* const handle = ::dlopen(FLEXALLOC_MIMALLOC_LIBRARY, RTLD_NOW | RTLD_LOCAL);
      if (handle == nullptr) throw std::runtime_error(std::string("mimalloc: ") + ::dlerror());
      return Library{reinterpret_cast<void* (*)(std::size_t)>(::dlsym(handle, "mi_malloc")),
                     reinterpret_cast<void (*)(void*)>(::dlsym(handle, "mi_free"))};
    }();
    return loaded;
  }
};
static_assert(Peer<Mimalloc>);

}  // namespace flexbench
