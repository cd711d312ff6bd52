// SPDX-License-Identifier: Apache-2.0
#include "memory_reporter.hpp"

#include <atomic>

#include <c10/core/Allocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exit_gate.hpp"
#include "spyre_device.hpp"

namespace spyre_torch {
namespace {

/// From here on a released block does not keep the host's pages that were touched: they go back, as
/// glibc does with what it took from the system. Smaller ones stay, for whoever has the addresses
/// next.
constexpr std::uintptr_t kLarge = std::uintptr_t{32} << 20;

void giveBackPages(void* data, std::uintptr_t nbytes) noexcept {
  static auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto const begin = reinterpret_cast<std::uintptr_t>(data);
  std::uintptr_t const first = (begin + page - 1) / page * page;
  std::uintptr_t const last = (begin + nbytes) / page * page;
  (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

class TorchReporter final : public spyre::MemoryReporter {
 public:
  void report(void* data, std::int64_t change) noexcept override {
    passExitGate();
    auto const released = static_cast<std::uintptr_t>(change < 0 ? -change : 0);
    if (released >= kLarge) giveBackPages(data, released);
    std::int64_t const total = allocated_.fetch_add(change, std::memory_order_relaxed) + change;
    if (!c10::memoryProfilingEnabled()) return;
    // What is reserved as well would take the allocator's mutex to know.
    auto const now = static_cast<std::size_t>(total);
    c10::reportMemoryUsageToProfiler(data, change, now, now, spyreDevice());
  }

 private:
  std::atomic<std::int64_t> allocated_{0};
};

}  // namespace

std::shared_ptr<spyre::MemoryReporter> makeMemoryReporter() {
  return std::make_shared<TorchReporter>();
}

}  // namespace spyre_torch
