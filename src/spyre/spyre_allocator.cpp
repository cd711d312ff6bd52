// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <spyre/spyre_allocator.hpp>

namespace spyre {
namespace {

/// The context of a DataPtr.
struct Allocation {
  flex::CompositeAddress address;
  std::shared_ptr<MemoryReporter> reporter;

  void report(int sign) const noexcept {
    if (reporter == nullptr) return;
    std::int64_t nbytes = 0;
    for (flex::Chunk const& chunk : address.chunks()) {
      nbytes += static_cast<std::int64_t>(chunk.nbytes);
    }
    reporter->report(data(), sign * nbytes);
  }

  [[nodiscard]] void* data() const noexcept {
    return reinterpret_cast<void*>(address.address());  // NOLINT(performance-no-int-to-ptr)
  }
};

}  // namespace

void ReportAndDelete(void* context) noexcept {
  std::unique_ptr<Allocation> const allocation(static_cast<Allocation*>(context));
  if (allocation != nullptr) allocation->report(-1);
}

flex::CompositeAddress const* addressOf(DataPtr const& data) noexcept {
  if (data.deleter() != &ReportAndDelete || data.context() == nullptr) return nullptr;
  return &static_cast<Allocation const*>(data.context())->address;
}

DataPtr detail::makeDataPtr(flex::CompositeAddress&& address,
                            std::shared_ptr<MemoryReporter> const& reporter) {
  auto allocation = std::make_unique<Allocation>(Allocation{std::move(address), reporter});
  allocation->report(+1);
  void* const data = allocation->data();
  return {data, allocation.release(), &ReportAndDelete};
}

}  // namespace spyre
