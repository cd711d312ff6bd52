// SPDX-License-Identifier: Apache-2.0
// Where in its regions an allocator places requests.
#include <gtest/gtest.h>

#include "sandbox.hpp"

namespace flex::test {
namespace {

using Box = Sandbox<HoldMutexDuringCallback>;

AllocatorOptions regions(std::uint32_t count, RegionOrder order = RegionOrder::most_free) {
  AllocatorOptions options;
  options.regions = count;
  options.region_order = order;
  return options;
}

std::uint32_t regionOf(CompositeAddress const& address) { return address.chunks()[0].region; }
DomainId domainOf(CompositeAddress const& address) { return address.chunks()[0].domain; }

TEST(MemoryPool, TakesSevenRegionsByDefaultTheFirstForPrograms) {
  Box box(AllocatorOptions{}, singleDomain(7 * kBlock));
  EXPECT_EQ(box->statistics().regions.current, 7);
  CompositeAddress const program = box->allocateInDomain(kBlock, 0, MemoryType::program);
  EXPECT_EQ(regionOf(program), 0U);
  std::vector<CompositeAddress> tensors;
  for (int i = 0; i < 6; ++i) tensors.push_back(box->allocate(kBlock));
  for (auto const& tensor : tensors) EXPECT_NE(regionOf(tensor), 0U);
  EXPECT_FALSE(box->tryAllocate(128));
  EXPECT_FALSE(box->tryAllocate(128, {.memory_type = MemoryType::program}));
}

TEST(MemoryPool, RoundsRegionsDownToTheGranule) {
  Box box(regions(3), singleDomain(3 * 128 + 5));
  EXPECT_EQ(box->statistics().total, 3 * 128U);
  EXPECT_EQ(box->statistics().capacity, 3 * 128U);
}

TEST(MemoryPool, RefusesMoreRegionsThanThereAreGranules) {
  EXPECT_THROW(Box(regions(7), singleDomain(6 * 128)), std::invalid_argument);
}

TEST(MemoryPool, KeepsRegionsBelowTheirLimit) {
  AllocatorOptions options = regions(2);
  options.max_region_bytes = 2 * kBlock + 1;
  Box box(options);
  EXPECT_EQ(box->statistics().total, 4 * kBlock);
}

TEST(MemoryPool, SearchesTheEmptiestRegionFirst) {
  Box box(regions(3), singleDomain(3 * 4 * kBlock));  // regions 1 and 2 hold tensors
  CompositeAddress const a = box->allocate(kBlock);
  CompositeAddress const b = box->allocate(2 * kBlock);
  CompositeAddress const c = box->allocate(kBlock);
  CompositeAddress const d = box->allocate(kBlock);
  EXPECT_EQ(regionOf(a), 1U) << "ties go to the lowest id";
  EXPECT_EQ(regionOf(b), 2U);
  EXPECT_EQ(regionOf(c), 1U);
  EXPECT_EQ(regionOf(d), 1U) << "2 blocks are free in each";
}

TEST(MemoryPool, SearchesTheFullestRegionFirstWhereAsked) {
  Box box(regions(3, RegionOrder::least_free), singleDomain(3 * 4 * kBlock));
  CompositeAddress const a = box->allocate(kBlock);
  CompositeAddress const b = box->allocate(2 * kBlock);
  CompositeAddress const c = box->allocate(2 * kBlock);
  CompositeAddress const d = box->allocate(kBlock);
  EXPECT_EQ(regionOf(a), 1U);
  EXPECT_EQ(regionOf(b), 1U);
  EXPECT_EQ(regionOf(c), 2U) << "it did not fit the fullest";
  EXPECT_EQ(regionOf(d), 1U);
}

// A region with much in small pieces is passed over.
TEST(MemoryPool, GoesOnToTheNextRegionWhereTheFirstIsFragmented) {
  Box box(regions(3), singleDomain(3 * 8 * kBlock));
  std::vector<CompositeAddress> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(box->allocate(kBlock));
  int freed = 0;
  for (auto& block : blocks) {
    auto const chunk = block.chunks()[0];
    if (chunk.region == 1 && chunk.offset / kBlock % 2 == 0) {
      block.reset();
      ++freed;
    }
  }
  ASSERT_EQ(freed, 4);
  for (auto& block : blocks) {
    if (!block) continue;
    auto const chunk = block.chunks()[0];
    if (chunk.region == 2 && chunk.offset < 2 * kBlock) block.reset();
  }
  EXPECT_EQ(regionOf(box->allocate(2 * kBlock)), 2U);
}

TEST(MemoryPool, GivesEqualAddressesToEqualRequests) {
  auto const play = [] {
    Box box(regions(4), singleDomain(4 * 32 * kBlock));
    std::vector<std::pair<std::uint32_t, std::uint64_t>> places;
    std::vector<CompositeAddress> held;
    for (std::uint64_t i = 0; i < 60; ++i) {
      held.push_back(box->allocate((1 + i * 7 % 5) * 300));
      auto const chunk = held.back().chunks()[0];
      places.emplace_back(chunk.region, chunk.offset);
      if (i % 3 == 0) held.erase(held.begin() + static_cast<std::ptrdiff_t>(i / 3));
    }
    return places;
  };
  EXPECT_EQ(play(), play());
}

TEST(MemoryPool, FollowsTheOrderOfNamedDomains) {
  Box box(oneRegion(), {{4 * kBlock, 4 * kBlock, 4 * kBlock}, {}});
  AllocationDirective const directive{.domain_ids = {2, 0}};
  CompositeAddress const first = box->allocate(4 * kBlock, directive);
  CompositeAddress const second = box->allocate(kBlock, directive);
  EXPECT_EQ(domainOf(first), 2U);
  EXPECT_EQ(domainOf(second), 0U);
  EXPECT_EQ(domainOf(box->allocateInDomain(kBlock, 1)), 1U);
  EXPECT_FALSE(box->tryAllocate(4 * kBlock, directive)) << "domain 1 was not named";
}

TEST(MemoryPool, PrefersDomainsThatAreNear) {
  Box box(oneRegion(), {{4 * kBlock, 4 * kBlock, 4 * kBlock}, {{0, 9, 1}, {9, 0, 1}, {1, 1, 0}}});
  AllocationDirective const directive{.near = 0};
  EXPECT_EQ(domainOf(box->allocate(kBlock, directive)), 0U);
  CompositeAddress const full = box->allocateInDomain(4 * kBlock, 0);
  EXPECT_EQ(domainOf(box->allocate(kBlock, directive)), 2U);
}

TEST(MemoryPool, InterleavesEqualChunksAllOrNothing) {
  Box box(oneRegion(), {{4 * kBlock, 4 * kBlock}, {}});
  AllocationDirective const directive{.policy = PlacementPolicy::interleave};
  CompositeAddress const both = box->allocate(2 * kBlock + 1, directive);
  auto const chunks = both.chunks();
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(chunks[0].nbytes, kBlock + 128);
  EXPECT_EQ(chunks[1].nbytes, kBlock + 128);
  EXPECT_EQ(both.nbytes(), 2 * kBlock + 1);
  Statistics const now = box->statistics();
  EXPECT_EQ(now.requested_bytes.current, static_cast<std::int64_t>(2 * kBlock + 1));
  EXPECT_EQ(now.allocated_bytes.current, static_cast<std::int64_t>(2 * kBlock + 256));
  CompositeAddress const one = box->allocateInDomain(2 * kBlock, 1);
  EXPECT_FALSE(box->tryAllocate(4 * kBlock, directive));
  EXPECT_EQ(box->statistics().free, now.free - 2 * kBlock);
  box->checkInvariants();
}

TEST(MemoryPool, ScattersOnlyWhereNoSingleBlockFits) {
  Box box;
  AllocationDirective const scatter{.policy = PlacementPolicy::scatter};
  EXPECT_EQ(box->allocate(4 * kBlock, scatter).chunks().size(), 1U);
  auto held = box.hold(kBlocks);
  for (std::size_t i = 0; i < kBlocks; i += 2) held[i].reset();
  EXPECT_FALSE(box->tryAllocate(2 * kBlock));
  CompositeAddress const pieces = box->allocate(3 * kBlock + 1, scatter);
  std::uint64_t sum = 0;
  for (auto const& chunk : pieces.chunks()) sum += chunk.nbytes;
  EXPECT_EQ(sum, 3 * kBlock + 128);
  EXPECT_EQ(pieces.chunks().size(), 4U);
  EXPECT_EQ(pieces.nbytes(), 3 * kBlock + 1);
  EXPECT_EQ(box->statistics().allocations.current, static_cast<std::int64_t>(kBlocks / 2 + 1));
  box->checkInvariants();
}

TEST(MemoryPool, FailedScatterTakesNothing) {
  Box box;
  auto held = box.hold(kBlocks);
  for (std::size_t i = 0; i < kBlocks; i += 2) held[i].reset();
  Statistics const before = box->statistics();
  EXPECT_FALSE(box->tryAllocate(kCapacity / 2 + 1, {.policy = PlacementPolicy::scatter}));
  EXPECT_EQ(box->statistics().free, before.free);
  EXPECT_EQ(box->statistics().blocks, before.blocks);
  box->checkInvariants();
}

TEST(MemoryPool, RefusesZeroBytesOnEveryPath) {
  Box box;
  EXPECT_THROW((void)box->allocate(0), std::invalid_argument);
  EXPECT_THROW((void)box->tryAllocate(0), std::invalid_argument);
  EXPECT_THROW((void)box->tryAllocateAtOnce(0), std::invalid_argument);
  EXPECT_THROW((void)box->allocateInDomain(0, 0), std::invalid_argument);
  EXPECT_THROW((void)box->allocateInDomain(1, 1), std::invalid_argument);
}

TEST(MemoryPool, SurvivesTheLargestRequests) {
  Box box;
  for (std::uint64_t const nbytes :
       {~std::uint64_t{0}, ~std::uint64_t{0} - 127, std::uint64_t{1} << 63U,
        std::uint64_t{1} << 39U, std::uint64_t{1} << 38U}) {
    auto const info = outOfMemory([&] { return box->allocate(nbytes); });
    ASSERT_TRUE(info) << nbytes;
    EXPECT_EQ(info->reason, FailureReason::larger_than_any_region);
    EXPECT_FALSE(box->tryAllocate(nbytes));
    EXPECT_FALSE(box->tryAllocateAtOnce(nbytes));
  }
}

}  // namespace
}  // namespace flex::test
