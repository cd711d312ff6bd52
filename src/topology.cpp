// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <flex/topology.hpp>

namespace flex {

void DeviceTopology::validate() const {
  if (domain_capacity.empty() || domain_capacity.size() > kMaxDomains) {
    throw std::invalid_argument(fmt::format("a topology has 1 to {} domains, this one has {}",
                                            kMaxDomains, domain_capacity.size()));
  }
  bool const square = distance.size() == domain_capacity.size() &&
                      std::ranges::all_of(distance, [this](auto const& row) {
                        return row.size() == domain_capacity.size();
                      });
  if (!distance.empty() && !square) {
    throw std::invalid_argument(
        fmt::format("the distance matrix must be {0} x {0}, one row and column a domain",
                    domain_capacity.size()));
  }
}

DeviceTopology singleDomain(std::uint64_t capacity) { return {{capacity}, {}}; }

}  // namespace flex
