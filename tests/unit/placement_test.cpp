// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include <flex/bytes.hpp>
#include <flex/detail/placement.hpp>

namespace flex::detail {
namespace {

DeviceTopology const kFour{{kGiB, kGiB, kGiB, kGiB}, {}};

std::vector<DomainId> domainsOf(AllocationDirective const& directive) {
  auto const placement = makePlacement(1, directive, kFour);
  return {placement.domains.begin(), placement.domains.end()};
}

TEST(Placement, RoundsUpToGranules) {
  EXPECT_EQ(makePlacement(1, {}, kFour).granules, 1U);
  EXPECT_EQ(makePlacement(128, {}, kFour).granules, 1U);
  EXPECT_EQ(makePlacement(129, {}, kFour).granules, 2U);
  EXPECT_EQ(makePlacement(129, {}, kFour).requested, 129U);
}

TEST(Placement, RefusesZeroBytes) {
  EXPECT_THROW((void)makePlacement(0, {}, kFour), std::invalid_argument);
}

TEST(Placement, KeepsSizesBeyondAnyBlockFromWrappingAround) {
  EXPECT_EQ(makePlacement(~std::uint64_t{0}, {}, kFour).granules, 0U);
  EXPECT_EQ(makePlacement((std::uint64_t{1} << 32U) * kGranule, {}, kFour).granules, 0U);
  EXPECT_EQ(makePlacement(((std::uint64_t{1} << 32U) - 1) * kGranule, {}, kFour).granules,
            0xFFFF'FFFFU);
}

TEST(Placement, KeepsTheOrderOfDomains) {
  EXPECT_TRUE(domainsOf({}).empty()) << "any domain, all alike";
  EXPECT_EQ(domainsOf({.domain_ids = {3, 1}}), (std::vector<DomainId>{3, 1}));
}

TEST(Placement, PutsNearDomainsFirst) {
  EXPECT_EQ(domainsOf({.near = 2}), (std::vector<DomainId>{2, 1, 3, 0}));
  EXPECT_EQ(domainsOf({.domain_ids = {0, 3}, .near = 2}), (std::vector<DomainId>{3, 0}));
}

TEST(Placement, SharesInterleavedBytesEqually) {
  AllocationDirective directive{.policy = PlacementPolicy::interleave, .domain_ids = {0, 2, 3}};
  auto const placement = makePlacement(3 * 128 + 1, directive, kFour);
  EXPECT_EQ(placement.chunks, 3U);
  EXPECT_EQ(placement.granules, 2U);
  directive.domain_ids.clear();
  EXPECT_EQ(makePlacement(1, directive, kFour).chunks, 4U) << "over all domains";
}

TEST(Placement, RefusesWhatCannotBeInterleaved) {
  AllocationDirective const one{.policy = PlacementPolicy::interleave, .domain_ids = {1}};
  EXPECT_THROW((void)makePlacement(1, one, kFour), std::invalid_argument);
  AllocationDirective const all{.policy = PlacementPolicy::interleave};
  EXPECT_THROW((void)makePlacement(1, all, singleDomain(kGiB)), std::invalid_argument);
}

TEST(Placement, RefusesUnknownAndRepeatedDomains) {
  EXPECT_THROW((void)domainsOf({.domain_ids = {4}}), std::invalid_argument);
  EXPECT_THROW((void)domainsOf({.domain_ids = {1, 1}}), std::invalid_argument);
  EXPECT_THROW((void)domainsOf({.near = 4}), std::invalid_argument);
}

TEST(Placement, BoundsTheChunksOfAScatteredRequest) {
  auto const placement = makePlacement(kGiB, {.policy = PlacementPolicy::scatter}, kFour);
  EXPECT_EQ(placement.chunks, kMaxScatterChunks);
  EXPECT_EQ(placement.granules, kGiB / kGranule);
}

}  // namespace
}  // namespace flex::detail
