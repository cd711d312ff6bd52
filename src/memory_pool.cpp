// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include <flex/detail/memory_pool.hpp>
#include <flex/error.hpp>

namespace flex::detail {
namespace {

// A block index counts granules in 32 bits.
constexpr std::uint64_t kLargestRegion =
    std::uint64_t{std::numeric_limits<std::uint32_t>::max() - 2} * kGranule;

std::uint64_t bytesOf(std::uint32_t granules) noexcept { return granules * kGranule; }

std::vector<GrowthPlan> makeLayout(AllocatorOptions const& options, DeviceTopology const& topology,
                                   std::uint64_t max_region_bytes) {
  std::vector<GrowthPlan> layout;
  if (options.acquisition != Acquisition::upfront) return layout;
  for (DomainId domain = 0; domain < topology.domainCount(); ++domain) {
    std::uint64_t const capacity = topology.domain_capacity[domain];
    std::uint64_t const each =
        roundDownToGranule(std::min(capacity / options.regions, max_region_bytes));
    if (each == 0) {
      throw std::invalid_argument(
          fmt::format("domain {} has {}: too little for {} regions of at least {} bytes", domain,
                      formatBytes(capacity), options.regions, kGranule));
    }
    for (std::uint32_t i = 0; i < options.regions; ++i) {
      MemoryTypes types = maskOf(i == 0 ? MemoryType::program : MemoryType::tensor);
      if (options.regions == 1) types = kBothMemoryTypes;
      layout.push_back({each, domain, types});
    }
  }
  return layout;
}

}  // namespace

MemoryPool::MemoryPool(AllocatorOptions const& options, DeviceTopology const& topology,
                       std::uint64_t device_max_region_bytes, Engine* owner)
    : owner_(owner),
      acquisition_(options.acquisition),
      region_order_(options.region_order),
      max_regions_per_domain_(options.regions),
      max_region_bytes_(roundDownToGranule(
          std::min({options.max_region_bytes, device_max_region_bytes, kLargestRegion}))),
      fallback_sizes_(options.fallback_sizes),
      domain_capacity_(topology.domain_capacity),
      layout_(makeLayout(options, topology, max_region_bytes_)) {}

// ---------------------------------------------------------------------------- placing

bool MemoryPool::tryPlace(Placement const& placement, BlockList& blocks) noexcept {
  if (placement.granules == 0) return false;
  bool placed = false;
  switch (placement.policy) {
    case PlacementPolicy::bind:
      if (BlockHandle const block = placeAnywhere(placement)) {
        blocks.append(block);
        placed = true;
      }
      break;
    case PlacementPolicy::interleave:
      placed = placeInterleaved(placement, blocks);
      break;
    case PlacementPolicy::scatter:
      placed = placeScattered(placement, blocks);
      break;
  }
  if (!placed) return false;
  std::uint64_t nbytes = 0;
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    BlockNode& block = blocks[i].region->index.node(blocks[i].node);
    nbytes += bytesOf(block.size);
    block.user = BlockUse{}.packed();
  }
  blocks[0].region->index.node(blocks[0].node).user =
      BlockUse{static_cast<std::uint32_t>(nbytes - placement.requested), true}.packed();
  count(nbytes, placement.requested);
  return true;
}

BlockHandle MemoryPool::placeInDomain(std::uint32_t granules, MemoryType type,
                                      std::optional<DomainId> domain) noexcept {
  // Walks the regions in their order without sorting them: each round picks the first one behind
  // the last that was tried. The first round nearly always serves.
  Region* tried = nullptr;
  auto const comes_before = [this](Region const& a, Region const& b) {
    std::uint32_t const free_a = a.index.freeGranules();
    std::uint32_t const free_b = b.index.freeGranules();
    if (free_a == free_b) return a.id < b.id;
    return region_order_ == RegionOrder::most_free ? free_a > free_b : free_a < free_b;
  };
  for (;;) {
    Region* next = nullptr;
    for (auto const& region : regions_) {
      if (region == nullptr || region->index.freeGranules() < granules || !region->serves(type) ||
          (domain && region->where.domain != *domain) ||
          (tried != nullptr && !comes_before(*tried, *region))) {
        continue;
      }
      if (next == nullptr || comes_before(*region, *next)) next = region.get();
    }
    if (next == nullptr) return {};
    if (NodeIndex const node = next->index.allocate(granules)) return {next, node};
    tried = next;
  }
}

BlockHandle MemoryPool::placeAnywhere(Placement const& placement) noexcept {
  if (placement.domains.empty()) {
    return placeInDomain(placement.granules, placement.memory_type, std::nullopt);
  }
  for (DomainId const domain : placement.domains) {
    if (BlockHandle const block =
            placeInDomain(placement.granules, placement.memory_type, domain)) {
      return block;
    }
  }
  return {};
}

bool MemoryPool::placeInterleaved(Placement const& placement, BlockList& blocks) noexcept {
  for (DomainId const domain : placement.domains) {
    BlockHandle const block = placeInDomain(placement.granules, placement.memory_type, domain);
    if (!block) {
      undo(blocks);
      return false;
    }
    blocks.append(block);
  }
  return true;
}

bool MemoryPool::placeScattered(Placement const& placement, BlockList& blocks) noexcept {
  if (BlockHandle const whole = placeAnywhere(placement)) {
    blocks.append(whole);
    return true;
  }
  std::uint32_t missing = placement.granules;
  while (missing > 0 && blocks.size() < placement.chunks) {
    Region* const region = roomiest(placement);
    if (region == nullptr) break;
    std::uint32_t const piece = std::min(missing, region->index.largestFree());
    NodeIndex const node = region->index.allocate(piece);
    if (node == 0) break;
    blocks.append({region, node});
    missing -= piece;
  }
  if (missing == 0) return true;
  undo(blocks);
  return false;
}

Region* MemoryPool::roomiest(Placement const& placement) const noexcept {
  Region* best = nullptr;
  for (auto const& region : regions_) {
    if (region == nullptr || !wants(placement, *region) || region->index.freeGranules() == 0) {
      continue;
    }
    if (best == nullptr || region->index.largestFree() > best->index.largestFree()) {
      best = region.get();
    }
  }
  return best;
}

void MemoryPool::undo(BlockList& blocks) noexcept {
  for (std::uint32_t i = 0; i < blocks.size(); ++i) blocks[i].region->index.free(blocks[i].node);
  blocks.clear();
}

// ---------------------------------------------------------------------------- regions

/// Domains, in order of preference, in which the request finds no block now.
std::vector<DomainId> MemoryPool::lackingDomains(Placement const& placement) const {
  std::vector<DomainId> domains(placement.domains.begin(), placement.domains.end());
  if (domains.empty()) {
    for (DomainId domain = 0; domain < domain_capacity_.size(); ++domain) domains.push_back(domain);
  }
  if (placement.policy != PlacementPolicy::interleave) return domains;
  std::erase_if(domains, [&](DomainId domain) { return fitsInDomain(placement, domain); });
  return domains;
}

std::vector<GrowthPlan> MemoryPool::growthPlans(Placement const& placement) const {
  std::vector<GrowthPlan> plans;
  if (placement.granules == 0) return plans;
  bool const layout_is_full =
      acquisition_ == Acquisition::upfront &&
      counters_.regions.current() == static_cast<std::int64_t>(layout_.size());
  if (layout_is_full) return plans;
  std::uint64_t const need =
      placement.policy == PlacementPolicy::scatter ? kGranule : bytesOf(placement.granules);
  for (DomainId const domain : lackingDomains(placement)) {
    if (acquisition_ == Acquisition::upfront) {
      // Only what was trimmed can come back: the entries of the layout that no region fills now.
      std::vector<GrowthPlan> vacant = layout_;
      for (auto const& region : regions_) {
        if (region == nullptr) continue;
        auto const filled = std::ranges::find_if(vacant, [&](GrowthPlan const& plan) {
          return plan.domain == region->where.domain && plan.types == region->types &&
                 plan.nbytes == region->where.nbytes;
        });
        if (filled != vacant.end()) vacant.erase(filled);
      }
      for (GrowthPlan const& plan : vacant) {
        if (plan.domain == domain && plan.nbytes >= need &&
            (plan.types & maskOf(placement.memory_type)) != 0) {
          plans.push_back(plan);
        }
      }
      continue;
    }
    MemoryTypes const types =
        max_regions_per_domain_ == 1 ? kBothMemoryTypes : maskOf(placement.memory_type);
    std::uint64_t const most =
        roundDownToGranule(std::min(max_region_bytes_, domain_capacity_[domain]));
    auto const present = std::ranges::count_if(regions_, [&](auto const& region) {
      return region != nullptr && region->where.domain == domain;
    });
    if (static_cast<std::uint32_t>(present) >= max_regions_per_domain_) continue;
    bool any_fallback = false;
    for (std::uint64_t const size : fallback_sizes_) {
      std::uint64_t const rounded = roundDownToGranule(std::min(size, most));
      if (rounded < need) continue;
      any_fallback = true;
      bool const repeated =
          !plans.empty() && plans.back().domain == domain && plans.back().nbytes == rounded;
      if (!repeated) plans.push_back({rounded, domain, types});
    }
    if (!any_fallback && need <= most) plans.push_back({need, domain, types});
  }
  return plans;
}

void MemoryPool::addRegion(DeviceRegion const& where, MemoryTypes types) {
  auto const vacant =
      std::ranges::find_if(regions_, [](auto const& region) { return region == nullptr; });
  auto const id = static_cast<std::uint32_t>(vacant - regions_.begin());
  auto region = std::make_unique<Region>(owner_, id, where, types);
  if (vacant != regions_.end()) {
    *vacant = std::move(region);
  } else {
    regions_.push_back(std::move(region));
  }
  counters_.regions.increase(1);
  counters_.reserved_bytes.increase(static_cast<std::int64_t>(where.nbytes));
  findOnlyTensorRegion();
}

void MemoryPool::findOnlyTensorRegion() noexcept {
  only_tensor_region_ = nullptr;
  for (auto const& region : regions_) {
    if (region == nullptr || !region->serves(MemoryType::tensor)) continue;
    if (only_tensor_region_ != nullptr) {
      only_tensor_region_ = nullptr;
      return;
    }
    only_tensor_region_ = region.get();
  }
}

bool MemoryPool::hasEmptyRegion() const noexcept {
  return std::ranges::any_of(
      regions_, [](auto const& region) { return region != nullptr && region->index.empty(); });
}

std::vector<std::unique_ptr<Region>> MemoryPool::takeEmptyRegions(std::optional<DomainId> domain) {
  std::vector<std::unique_ptr<Region>> taken;
  taken.reserve(regions_.size());
  for (auto& region : regions_) {
    if (region == nullptr || !region->index.empty()) continue;
    if (domain && region->where.domain != *domain) continue;
    counters_.regions.decrease(1);
    counters_.reserved_bytes.decrease(static_cast<std::int64_t>(region->where.nbytes));
    taken.push_back(std::move(region));
  }
  findOnlyTensorRegion();
  return taken;
}

// ---------------------------------------------------------------------------- observers

bool MemoryPool::wants(Placement const& placement, Region const& region) const noexcept {
  return region.serves(placement.memory_type) &&
         (placement.domains.empty() ||
          std::ranges::find(placement.domains, region.where.domain) != placement.domains.end());
}

std::uint64_t MemoryPool::largestPossible(DomainId domain, MemoryType type) const noexcept {
  if (acquisition_ == Acquisition::on_demand) {
    return std::min(max_region_bytes_, domain_capacity_[domain]);
  }
  std::uint64_t largest = 0;
  for (GrowthPlan const& plan : layout_) {
    if (plan.domain == domain && (plan.types & maskOf(type)) != 0) {
      largest = std::max(largest, plan.nbytes);
    }
  }
  return largest;
}

bool MemoryPool::couldEverServe(Placement const& placement) const noexcept {
  if (placement.granules == 0) return false;
  std::uint64_t const need = bytesOf(placement.granules);
  auto const fits = [&](DomainId domain) {
    return largestPossible(domain, placement.memory_type) >= need;
  };
  if (placement.policy == PlacementPolicy::interleave) {
    return std::ranges::all_of(placement.domains, fits);
  }
  std::uint64_t sum = 0;
  for (DomainId domain = 0; domain < domain_capacity_.size(); ++domain) {
    if (!placement.domains.empty() &&
        std::ranges::find(placement.domains, domain) == placement.domains.end()) {
      continue;
    }
    if (fits(domain)) return true;
    sum += domain_capacity_[domain];
  }
  return placement.policy == PlacementPolicy::scatter && sum >= need;
}

bool MemoryPool::fitsInDomain(Placement const& placement, DomainId domain) const noexcept {
  return std::ranges::any_of(regions_, [&](auto const& region) {
    return region != nullptr && region->where.domain == domain &&
           region->serves(placement.memory_type) &&
           region->index.largestFree() >= placement.granules;
  });
}

bool MemoryPool::fits(Placement const& placement) const noexcept {
  if (placement.granules == 0) return false;
  FreeSpace const space = freeSpace(placement);
  switch (placement.policy) {
    case PlacementPolicy::bind:
      return space.largest >= bytesOf(placement.granules);
    case PlacementPolicy::interleave:
      return std::ranges::all_of(placement.domains,
                                 [&](DomainId domain) { return fitsInDomain(placement, domain); });
    case PlacementPolicy::scatter:
      return space.free >= bytesOf(placement.granules);
  }
  return false;
}

FreeSpace MemoryPool::freeSpace(Placement const& placement) const noexcept {
  FreeSpace space;
  for (auto const& region : regions_) {
    if (region == nullptr || !wants(placement, *region)) continue;
    space.free += bytesOf(region->index.freeGranules());
    space.largest = std::max(space.largest, bytesOf(region->index.largestFree()));
    space.total += region->where.nbytes;
  }
  return space;
}

void MemoryPool::describe(Statistics& statistics) const noexcept {
  statistics.allocations = counters_.allocations.stat();
  statistics.allocated_bytes = counters_.allocated_bytes.stat();
  statistics.requested_bytes = counters_.requested_bytes.stat();
  statistics.regions = counters_.regions.stat();
  statistics.reserved_bytes = counters_.reserved_bytes.stat();
  for (auto const& region : regions_) {
    if (region == nullptr) continue;
    statistics.free += bytesOf(region->index.freeGranules());
    statistics.largest_free =
        std::max(statistics.largest_free, bytesOf(region->index.largestFree()));
    statistics.total += region->where.nbytes;
    statistics.blocks += region->index.blockCount();
    statistics.metadata_bytes += region->index.metadataBytes();
  }
  if (acquisition_ == Acquisition::upfront) {
    for (GrowthPlan const& plan : layout_) statistics.capacity += plan.nbytes;
  } else {
    for (std::uint64_t const capacity : domain_capacity_) statistics.capacity += capacity;
  }
}

void MemoryPool::resetPeak() noexcept {
  for (Counter* counter :
       {&counters_.allocations, &counters_.allocated_bytes, &counters_.requested_bytes,
        &counters_.regions, &counters_.reserved_bytes}) {
    counter->peak = counter->current();
  }
}

void MemoryPool::resetAccumulated() noexcept {
  for (Counter* counter :
       {&counters_.allocations, &counters_.allocated_bytes, &counters_.requested_bytes,
        &counters_.regions, &counters_.reserved_bytes}) {
    counter->allocated_before = counter->allocated;
    counter->freed_before = counter->freed;
  }
}

void MemoryPool::checkInvariants() const {
  auto const require = [](bool holds, char const* what) {
    if (!holds) throw InvariantViolation(fmt::format("memory pool: {}", what));
  };
  std::int64_t addresses = 0;
  std::int64_t used = 0;
  std::int64_t requested = 0;
  std::int64_t reserved = 0;
  std::int64_t count = 0;
  for (auto const& region : regions_) {
    if (region == nullptr) continue;
    region->index.checkInvariants();
    ++count;
    reserved += static_cast<std::int64_t>(region->where.nbytes);
    require(region->where.base % kGranule == 0, "a region does not start at a granule");
  }
  forEachBlock([&](Region const&, BlockNode const& block) {
    if (block.state != kUsedState) return;
    BlockUse const use = BlockUse::unpack(block.user);
    auto const nbytes = static_cast<std::int64_t>(bytesOf(block.size));
    addresses += use.first ? 1 : 0;
    used += nbytes;
    requested += nbytes - use.slack;
  });
  require(count == counters_.regions.current(), "the regions are miscounted");
  require(reserved == counters_.reserved_bytes.current(), "the reserved bytes are miscounted");
  require(addresses == counters_.allocations.current(), "the allocations are miscounted");
  require(used == counters_.allocated_bytes.current(), "the allocated bytes are miscounted");
  require(requested == counters_.requested_bytes.current(), "the requested bytes are miscounted");
}

}  // namespace flex::detail
