// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include <flex/detail/block_index.hpp>
#include <flex/error.hpp>

namespace flex::detail {
namespace {

std::uint32_t offsetOf(BlockIndex const& index, NodeIndex node) { return index.node(node).offset; }

/// Allocates blocks of the given sizes one behind the other.
std::vector<NodeIndex> fill(BlockIndex& index, std::vector<std::uint32_t> const& sizes) {
  std::vector<NodeIndex> nodes;
  for (std::uint32_t const size : sizes) nodes.push_back(index.allocate(size));
  return nodes;
}

void expectWhole(BlockIndex const& index) {
  index.checkInvariants();
  EXPECT_TRUE(index.empty());
  EXPECT_EQ(index.blockCount(), 1U);
  EXPECT_EQ(index.largestFree(), index.granules());
}

TEST(BlockIndex, StartsAsOneFreeBlock) {
  BlockIndex const index(100);
  expectWhole(index);
}

TEST(BlockIndex, CutsFromTheFront) {
  BlockIndex index(100);
  NodeIndex const first = index.allocate(10);
  NodeIndex const second = index.allocate(20);
  EXPECT_EQ(offsetOf(index, first), 0U);
  EXPECT_EQ(offsetOf(index, second), 10U);
  EXPECT_EQ(index.freeGranules(), 70U);
  EXPECT_EQ(index.blockCount(), 3U);
  index.checkInvariants();
}

TEST(BlockIndex, TakesAnExactFitWhole) {
  BlockIndex index(10);
  EXPECT_NE(index.allocate(10), 0U);
  EXPECT_EQ(index.blockCount(), 1U);
  EXPECT_EQ(index.freeGranules(), 0U);
  EXPECT_EQ(index.largestFree(), 0U);
  EXPECT_EQ(index.allocate(1), 0U);
  index.checkInvariants();
}

TEST(BlockIndex, MergesInAllFourSituations) {
  // The order of frees decides which neighbours of the last one are free: none, above, below, both.
  BlockIndex index(40);
  auto nodes = fill(index, {10, 10, 10, 10});
  index.free(nodes[1]);  // none
  index.checkInvariants();
  EXPECT_EQ(index.blockCount(), 4U);
  index.free(nodes[0]);  // above
  index.checkInvariants();
  EXPECT_EQ(index.blockCount(), 3U);
  EXPECT_EQ(index.largestFree(), 20U);
  index.free(nodes[3]);  // none
  index.free(nodes[2]);  // both
  expectWhole(index);
  nodes = fill(index, {10, 10, 20});
  index.free(nodes[0]);
  index.free(nodes[1]);  // below
  index.checkInvariants();
  EXPECT_EQ(index.blockCount(), 2U);
  index.free(nodes[2]);
  expectWhole(index);
}

// A block whose size class holds smaller ones, too, is found however deep in its list it is.
TEST(BlockIndex, SearchesTheRestOfItsOwnClassBeforeItFails) {
  // 64 and 65 granules share a class; one used granule keeps the free ones apart.
  BlockIndex index(4096);
  std::vector<NodeIndex> small;
  NodeIndex const large = index.allocate(65);
  (void)index.allocate(1);
  for (int i = 0; i < 10; ++i) {
    small.push_back(index.allocate(64));
    (void)index.allocate(1);
  }
  (void)index.allocate(index.largestFree());
  index.free(large);  // deepest in the list
  for (NodeIndex const node : small) index.free(node);
  NodeIndex const found = index.allocate(65);
  ASSERT_NE(found, 0U);
  EXPECT_EQ(offsetOf(index, found), 0U);
  EXPECT_EQ(index.allocate(65), 0U);
  EXPECT_EQ(index.allocate(65), 0U) << "a known miss stays one";
  EXPECT_NE(index.allocate(64), 0U);
  index.free(found);
  EXPECT_NE(index.allocate(65), 0U) << "and is forgotten when memory comes back";
  index.checkInvariants();
}

TEST(BlockIndex, PrefersAGoodFitToALargeBlock) {
  BlockIndex index(1000);
  auto const nodes = fill(index, {20, 1, 200, 1});
  index.free(nodes[0]);
  index.free(nodes[2]);
  EXPECT_EQ(offsetOf(index, index.allocate(20)), 0U);
  EXPECT_EQ(offsetOf(index, index.allocate(150)), 21U);
  index.checkInvariants();
}

TEST(BlockIndex, TakesTheBlockThatWasFreedLast) {
  BlockIndex index(1000);
  auto const nodes = fill(index, {8, 1, 8, 1, 8, 975 - 1});
  index.free(nodes[0]);
  index.free(nodes[4]);
  index.free(nodes[2]);
  EXPECT_EQ(offsetOf(index, index.allocate(8)), 9U);
  EXPECT_EQ(offsetOf(index, index.allocate(8)), 18U);
  EXPECT_EQ(offsetOf(index, index.allocate(8)), 0U);
}

TEST(BlockIndex, GivesTheSameOffsetsToTheSameRequests) {
  auto const play = [] {
    BlockIndex index(5000);
    std::vector<std::uint32_t> offsets;
    std::vector<NodeIndex> held;
    std::uint32_t state = 12345;
    for (int i = 0; i < 500; ++i) {
      state = state * 1664525U + 1013904223U;
      if (state % 3 != 0 || held.empty()) {
        NodeIndex const node = index.allocate(1 + (state >> 8U) % 40);
        if (node == 0) continue;
        held.push_back(node);
        offsets.push_back(offsetOf(index, node));
      } else {
        std::size_t const victim = (state >> 8U) % held.size();
        index.free(held[victim]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(victim));
      }
    }
    return offsets;
  };
  EXPECT_EQ(play(), play());
}

TEST(BlockIndex, RecoversFullyFromExhaustion) {
  BlockIndex index(2000);
  std::vector<NodeIndex> nodes;
  while (NodeIndex const node = index.allocate(1)) nodes.push_back(node);
  EXPECT_EQ(nodes.size(), 2000U);
  index.checkInvariants();
  std::size_t const metadata = index.metadataBytes();
  for (std::size_t step : {3U, 2U, 1U}) {  // out of order, so that all kinds of merges happen
    for (std::size_t i = 0; i < nodes.size(); i += step) {
      if (nodes[i] != 0) index.free(nodes[i]);
      nodes[i] = 0;
    }
    index.checkInvariants();
  }
  expectWhole(index);
  EXPECT_NE(index.allocate(2000), 0U);
  EXPECT_EQ(index.metadataBytes(), metadata) << "nodes are used again";
}

TEST(BlockIndex, HandlesTheLargestRegion) {
  BlockIndex index(0xFFFF'FFFFU - 2);
  NodeIndex const most = index.allocate(0xFFFF'FFFFU - 3);
  ASSERT_NE(most, 0U);
  EXPECT_EQ(index.largestFree(), 1U);
  index.free(most);
  expectWhole(index);
}

TEST(BlockIndex, CheckerFindsPlantedCorruption) {
  using Plant = std::function<void(BlockIndex&, NodeIndex used, NodeIndex free)>;
  std::vector<Plant> const plants = {
      [](BlockIndex& index, NodeIndex used, NodeIndex) { ++index.node(used).size; },
      [](BlockIndex& index, NodeIndex used, NodeIndex) { ++index.node(used).offset; },
      [](BlockIndex& index, NodeIndex used, NodeIndex) { index.node(used).previous = used; },
      [](BlockIndex& index, NodeIndex used, NodeIndex) { index.node(used).next = 0; },
      [](BlockIndex& index, NodeIndex used, NodeIndex) { index.node(used).state = kSpareState; },
      [](BlockIndex& index, NodeIndex, NodeIndex free) { index.node(free).state = kUsedState; },
      [](BlockIndex& index, NodeIndex, NodeIndex free) { ++index.node(free).state; },
      [](BlockIndex& index, NodeIndex, NodeIndex free) { index.node(free).link_previous = free; },
      [](BlockIndex& index, NodeIndex used, NodeIndex free) {
        index.node(used).state = index.node(free).state;
      },
  };
  for (std::size_t i = 0; i < plants.size(); ++i) {
    BlockIndex index(100);
    auto const nodes = fill(index, {10, 20, 30});
    index.free(nodes[1]);
    ASSERT_NO_THROW(index.checkInvariants());
    plants[i](index, nodes[0], nodes[1]);
    EXPECT_THROW(index.checkInvariants(), InvariantViolation) << "corruption " << i;
  }
}

}  // namespace
}  // namespace flex::detail
