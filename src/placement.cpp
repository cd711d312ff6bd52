// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include <flex/bytes.hpp>
#include <flex/detail/placement.hpp>

namespace flex::detail {
namespace {

void requireDomain(DomainId domain, DeviceTopology const& topology) {
  if (domain >= topology.domainCount()) {
    throw std::invalid_argument(fmt::format("domain {} does not exist; the device has 0 to {}",
                                            domain, topology.domainCount() - 1));
  }
}

/// 0 where the size is beyond what a block index can describe: such a request fits nowhere.
std::uint32_t toGranules(std::uint64_t nbytes) noexcept {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t const granules = nbytes / kGranule + (nbytes % kGranule != 0 ? 1 : 0);
  return granules > kMost ? 0 : static_cast<std::uint32_t>(granules);
}

}  // namespace

Placement makePlacement(std::uint64_t nbytes, AllocationDirective const& directive,
                        DeviceTopology const& topology) {
  if (nbytes == 0) throw std::invalid_argument("nbytes is 0; allowed are 1 and more");
  Placement placement;
  placement.requested = nbytes;
  placement.policy = directive.policy;
  placement.memory_type = directive.memory_type;
  for (DomainId const domain : directive.domain_ids) {
    requireDomain(domain, topology);
    if (std::ranges::find(placement.domains, domain) != placement.domains.end()) {
      throw std::invalid_argument(fmt::format("domain {} is named twice", domain));
    }
    placement.domains.push_back(domain);
  }
  bool const all_domains = placement.domains.empty();
  if (all_domains && (directive.near || directive.policy == PlacementPolicy::interleave)) {
    for (DomainId domain = 0; domain < topology.domainCount(); ++domain) {
      placement.domains.push_back(domain);
    }
  }
  if (directive.near) {
    requireDomain(*directive.near, topology);
    std::ranges::stable_sort(placement.domains, {}, [&](DomainId domain) {
      return topology.distanceBetween(*directive.near, domain);
    });
  }
  switch (directive.policy) {
    case PlacementPolicy::bind:
      placement.granules = toGranules(nbytes);
      break;
    case PlacementPolicy::interleave: {
      auto const ways = static_cast<std::uint32_t>(placement.domains.size());
      if (ways < 2) {
        throw std::invalid_argument(
            fmt::format("interleave needs two or more domains, got {}", ways));
      }
      placement.chunks = ways;
      placement.granules = toGranules(nbytes / ways + (nbytes % ways != 0 ? 1 : 0));
      break;
    }
    case PlacementPolicy::scatter:
      placement.chunks = kMaxScatterChunks;
      placement.granules = toGranules(nbytes);
      break;
  }
  return placement;
}

}  // namespace flex::detail
