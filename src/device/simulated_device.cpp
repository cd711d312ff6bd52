// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>

#include <sys/mman.h>

#include <flex/simulated_device.hpp>

namespace flex {

SimulatedDevice::SimulatedDevice(SimulatedDeviceOptions options)
    : options_(std::move(options)),
      used_by_domain_(options_.topology.domain_capacity.size()),
      failing_call_(options_.fail_on_call) {
  options_.topology.validate();
}

SimulatedDevice::SimulatedDevice(std::uint64_t capacity)
    : SimulatedDevice(SimulatedDeviceOptions{.topology = singleDomain(capacity)}) {}

SimulatedDevice::~SimulatedDevice() {
  for (auto const& [base, region] : regions_) {
    ::munmap(hostPointer(base), region.nbytes);
  }
}

DeviceTopology const& SimulatedDevice::topology() const noexcept { return options_.topology; }

std::uint64_t SimulatedDevice::maxRegionBytes() const noexcept {
  std::uint64_t const largest_domain = *std::ranges::max_element(options_.topology.domain_capacity);
  return std::min({largest_domain, options_.max_region_bytes, options_.budget_bytes});
}

std::optional<DeviceRegion> SimulatedDevice::tryAllocate(std::uint64_t nbytes, DomainId domain) {
  if (options_.latency > sync::Duration::zero()) std::this_thread::sleep_for(options_.latency);
  sync::RawUniqueLock const lock(mutex_.raw());
  if (++calls_ == failing_call_) return std::nullopt;
  if (domain >= used_by_domain_.size() || nbytes == 0) return std::nullopt;
  std::uint64_t& used = used_by_domain_[domain];
  if (nbytes > options_.max_region_bytes || regions_.size() >= options_.table_entries ||
      nbytes > options_.topology.domain_capacity[domain] - used ||
      nbytes > options_.budget_bytes - used_) {
    return std::nullopt;
  }
  void* const memory = ::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return std::nullopt;
  DeviceRegion const region{reinterpret_cast<DeviceAddress>(memory), nbytes, domain};
  try {
    regions_.emplace(region.base, region);
  } catch (...) {
    ::munmap(memory, nbytes);
    throw;
  }
  used += nbytes;
  used_ += nbytes;
  return region;
}

void SimulatedDevice::release(DeviceRegion const& region) noexcept {
  {
    sync::RawUniqueLock const lock(mutex_.raw());
    if (regions_.erase(region.base) == 0) return;
    used_by_domain_[region.domain] -= region.nbytes;
    used_ -= region.nbytes;
  }
  ::munmap(hostPointer(region.base), region.nbytes);
}

std::byte* SimulatedDevice::hostPointer(DeviceAddress address) const noexcept {
  return reinterpret_cast<std::byte*>(address);
}

std::uint64_t SimulatedDevice::calls() const noexcept {
  sync::RawUniqueLock const lock(mutex_.raw());
  return calls_;
}

void SimulatedDevice::failOnCall(std::uint64_t nth_from_now) noexcept {
  sync::RawUniqueLock const lock(mutex_.raw());
  failing_call_ = nth_from_now == 0 ? 0 : calls_ + nth_from_now;
}

std::uint64_t SimulatedDevice::bytesInUse() const noexcept {
  sync::RawUniqueLock const lock(mutex_.raw());
  return used_;
}

}  // namespace flex
