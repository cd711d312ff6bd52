// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an allocator must do, in the simplest words: which bytes of which region are used.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <flex/composite_address.hpp>
#include <flex/directive.hpp>

namespace flex::test {

/// One interval of used bytes, [begin, end).
struct Interval {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Used intervals by region, sorted; only regions of which something is used: the others come and
/// go without being missed. Every question is answered by a walk.
class SlowModel {
 public:
  struct Region {
    std::uint64_t nbytes = 0;
    DomainId domain = 0;
    std::vector<Interval> used;

    [[nodiscard]] std::uint64_t free() const {
      std::uint64_t sum = nbytes;
      for (Interval const& interval : used) sum -= interval.end - interval.begin;
      return sum;
    }
    /// Lengths of the gaps, in order.
    [[nodiscard]] std::vector<std::uint64_t> gaps() const {
      std::vector<std::uint64_t> lengths;
      std::uint64_t at = 0;
      for (Interval const& interval : used) {
        if (interval.begin > at) lengths.push_back(interval.begin - at);
        at = interval.end;
      }
      if (at < nbytes) lengths.push_back(nbytes - at);
      return lengths;
    }
    [[nodiscard]] std::uint64_t largest() const {
      auto const lengths = gaps();
      return lengths.empty() ? 0 : *std::ranges::max_element(lengths);
    }
  };

  /// Takes the chunks of an address. Returns what is wrong with them; empty if nothing.
  [[nodiscard]] std::string take(CompositeAddress const& address, std::uint64_t region_nbytes) {
    for (Chunk const& chunk : address.chunks()) {
      Region const fresh{region_nbytes, chunk.domain, {}};
      Region& region = regions.try_emplace(chunk.region, fresh).first->second;
      Interval const mine{chunk.offset, chunk.offset + chunk.nbytes};
      if (chunk.offset % 128 != 0 || chunk.nbytes % 128 != 0) return "not in granules";
      if (chunk.nbytes == 0) return "empty";
      if (mine.end > region.nbytes) return "beyond its region";
      if (region.domain != chunk.domain) return "in another domain than its region";
      auto const behind = std::ranges::upper_bound(region.used, mine.begin, {}, &Interval::begin);
      if (behind != region.used.end() && behind->begin < mine.end) return "overlaps the one above";
      if (behind != region.used.begin() && std::prev(behind)->end > mine.begin) {
        return "overlaps the one below";
      }
      region.used.insert(behind, mine);
    }
    return {};
  }

  void giveBack(CompositeAddress const& address) {
    for (Chunk const& chunk : address.chunks()) {
      auto const region = regions.find(chunk.region);
      std::erase_if(region->second.used,
                    [&](Interval const& interval) { return interval.begin == chunk.offset; });
      if (region->second.used.empty()) regions.erase(region);
    }
  }

  [[nodiscard]] std::uint64_t free() const {
    std::uint64_t sum = 0;
    for (auto const& [id, region] : regions) sum += region.free();
    return sum;
  }
  [[nodiscard]] std::uint64_t largest() const {
    std::uint64_t largest = 0;
    for (auto const& [id, region] : regions) largest = std::max(largest, region.largest());
    return largest;
  }
  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (auto const& [id, region] : regions) sum += region.nbytes;
    return sum;
  }
  /// Used and free blocks.
  [[nodiscard]] std::uint64_t blocks() const {
    std::uint64_t count = 0;
    for (auto const& [id, region] : regions) count += region.used.size() + region.gaps().size();
    return count;
  }

  std::map<std::uint32_t, Region> regions;
};

}  // namespace flex::test
