// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <spyre/spyre_allocator.hpp>

namespace spyre {
namespace {

thread_local std::uint64_t released_here = 0;

/// The context of a DataPtr.
struct Allocation {
  flex::CompositeAddress address;
  std::shared_ptr<MemoryReporter> reporter;

  [[nodiscard]] void* data() const noexcept {
    return reinterpret_cast<void*>(address.address());  // NOLINT(performance-no-int-to-ptr)
  }
};

}  // namespace

std::uint64_t bytesReleasedByThisThread() noexcept { return released_here; }

void ReportAndDelete(void* context) noexcept {
  std::unique_ptr<Allocation> const allocation(static_cast<Allocation*>(context));
  if (allocation == nullptr) return;
  std::uint64_t const nbytes = allocation->address.reservedBytes();
  released_here += nbytes;
  if (allocation->reporter != nullptr) {
    allocation->reporter->report(allocation->data(), -static_cast<std::int64_t>(nbytes));
  }
}

flex::CompositeAddress const* addressOf(DataPtr const& data) noexcept {
  if (data.deleter() != &ReportAndDelete || data.context() == nullptr) return nullptr;
  return &static_cast<Allocation const*>(data.context())->address;
}

DataPtr detail::makeDataPtr(flex::CompositeAddress&& address,
                            std::shared_ptr<MemoryReporter> const& reporter) {
  auto allocation = std::make_unique<Allocation>(Allocation{std::move(address), reporter});
  void* const data = allocation->data();
  if (reporter != nullptr) {
    reporter->report(data, static_cast<std::int64_t>(allocation->address.reservedBytes()));
  }
  return {data, allocation.release(), &ReportAndDelete};
}

}  // namespace spyre
