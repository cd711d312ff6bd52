// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <flex/offset_device.hpp>

namespace flex {

OffsetDevice::OffsetDevice(DeviceTopology topology)
    : topology_(std::move(topology)), used_by_domain_(topology_.domain_capacity.size()) {
  topology_.validate();
}

std::uint64_t OffsetDevice::maxRegionBytes() const noexcept {
  return *std::ranges::max_element(topology_.domain_capacity);
}

std::optional<DeviceRegion> OffsetDevice::tryAllocate(std::uint64_t nbytes, DomainId domain) {
  sync::RawUniqueLock const lock(mutex_.raw());
  if (domain >= used_by_domain_.size() || nbytes == 0 ||
      nbytes > topology_.domain_capacity[domain] - used_by_domain_[domain]) {
    return std::nullopt;
  }
  used_by_domain_[domain] += nbytes;
  DeviceRegion const region{next_, nbytes, domain};
  next_ += roundUpToGranule(nbytes);
  return region;
}

void OffsetDevice::release(DeviceRegion const& region) noexcept {
  sync::RawUniqueLock const lock(mutex_.raw());
  used_by_domain_[region.domain] -= region.nbytes;
}

}  // namespace flex
