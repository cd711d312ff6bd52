// SPDX-License-Identifier: Apache-2.0
#include "host_memory.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include <flex/detail/stable_array.hpp>

namespace flex::interleave {
namespace {

constexpr std::uint32_t kTracked = 0x7AC3ED01U;
constexpr std::uint32_t kOther = 0x07AE7001U;
constexpr std::uint32_t kDeleted = 0xDE1E7EDDU;
constexpr unsigned char kPoison = 0xDD;
constexpr std::size_t kKept = 8192;

struct alignas(16) Header {
  std::uint32_t kind;
  std::uint32_t nbytes;
};
static_assert(sizeof(Header) == 16);

int untracked = 1;  // until the first run begins
std::int64_t alive = 0;
std::size_t kept_count = 0;
Header* kept[kKept];
bool deleted_twice = false;

void* take(std::size_t nbytes) noexcept {
  auto* const header = static_cast<Header*>(std::malloc(nbytes + sizeof(Header)));
  if (header == nullptr) return nullptr;
  header->kind = untracked == 0 ? kTracked : kOther;
  header->nbytes = static_cast<std::uint32_t>(nbytes);
  if (untracked == 0) ++alive;
  return header + 1;
}

void giveBack(void* memory) noexcept {
  if (memory == nullptr) return;
  Header* const header = static_cast<Header*>(memory) - 1;
  if (header->kind == kDeleted) {
    deleted_twice = true;
    return;
  }
  if (header->kind == kTracked) --alive;
  if (header->kind != kTracked || kept_count == kKept) {
    std::free(header);
    return;
  }
  header->kind = kDeleted;
  std::memset(memory, kPoison, header->nbytes);
  kept[kept_count++] = header;
}

}  // namespace

int& HostMemory::depth() noexcept { return untracked; }

void HostMemory::beginRun() noexcept {
  alive = 0;
  deleted_twice = false;
  untracked = 0;
}

std::string HostMemory::endRun() {
  untracked = 1;
  bool written = false;
  for (std::size_t i = 0; i < kept_count; ++i) {
    auto const* const bytes = reinterpret_cast<unsigned char const*>(kept[i] + 1);
    std::uint32_t const nbytes = kept[i]->nbytes;
    // All bytes are the poison: the first is, and each equals the next.
    if (nbytes != 0 && (bytes[0] != kPoison || std::memcmp(bytes, bytes + 1, nbytes - 1) != 0)) {
      written = true;
    }
    std::free(kept[i]);
  }
  kept_count = 0;
  if (deleted_twice) return "host memory was deleted twice";
  if (written) return "host memory was written after it was deleted";
  if (alive != 0) return fmt::format("{} pieces of host memory are left", alive);
  return {};
}

}  // namespace flex::interleave

// Pages of the host would cost more than a whole run, and would not be looked at.
namespace flex::detail {

void* reserveAddressSpace(std::size_t nbytes) {
  return std::memset(::operator new(nbytes), 0, nbytes);
}

bool commitAddressSpace(void* /*begin*/, std::size_t /*nbytes*/) noexcept { return true; }

void releaseAddressSpace(void* begin, std::size_t /*nbytes*/) noexcept { ::operator delete(begin); }

}  // namespace flex::detail

void* operator new(std::size_t nbytes) {
  if (void* const memory = flex::interleave::take(nbytes)) return memory;
  throw std::bad_alloc();
}
void* operator new[](std::size_t nbytes) { return operator new(nbytes); }
void* operator new(std::size_t nbytes, std::nothrow_t const&) noexcept {
  return flex::interleave::take(nbytes);
}
void* operator new[](std::size_t nbytes, std::nothrow_t const&) noexcept {
  return flex::interleave::take(nbytes);
}
void operator delete(void* memory) noexcept { flex::interleave::giveBack(memory); }
void operator delete[](void* memory) noexcept { flex::interleave::giveBack(memory); }
void operator delete(void* memory, std::size_t) noexcept { flex::interleave::giveBack(memory); }
void operator delete[](void* memory, std::size_t) noexcept { flex::interleave::giveBack(memory); }
