// SPDX-License-Identifier: Apache-2.0
// The back ends that ship, each with every limit it has.
#include <cstring>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include <flex/offset_device.hpp>
#include <flex/simulated_device.hpp>

#include "byte_literals.hpp"

namespace flex {
namespace {

using namespace test::literals;

TEST(OffsetDevice, GivesUpToItsCapacity) {
  OffsetDevice device(4_KiB);
  EXPECT_EQ(device.maxRegionBytes(), 4_KiB);
  auto const first = device.tryAllocate(3_KiB, 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->nbytes, 3_KiB);
  EXPECT_NE(first->base, 0U);
  EXPECT_EQ(first->base % kGranule, 0U);
  EXPECT_FALSE(device.tryAllocate(2_KiB, 0));
  EXPECT_TRUE(device.tryAllocate(1_KiB, 0));
  device.release(*first);
  EXPECT_TRUE(device.tryAllocate(3_KiB, 0));
}

TEST(OffsetDevice, UsesNoAddressTwice) {
  OffsetDevice device(1_KiB);
  std::set<DeviceAddress> bases;
  for (int i = 0; i < 10; ++i) {
    auto const region = device.tryAllocate(1_KiB, 0);
    ASSERT_TRUE(region);
    EXPECT_TRUE(bases.insert(region->base).second);
    device.release(*region);
  }
}

TEST(OffsetDevice, KnowsItsDomains) {
  OffsetDevice device(DeviceTopology{{1_KiB, 4_KiB}, {}});
  EXPECT_EQ(device.topology().domainCount(), 2U);
  EXPECT_EQ(device.maxRegionBytes(), 4_KiB);
  EXPECT_FALSE(device.tryAllocate(2_KiB, 0));
  auto const region = device.tryAllocate(2_KiB, 1);
  ASSERT_TRUE(region);
  EXPECT_EQ(region->domain, 1U);
  EXPECT_FALSE(device.tryAllocate(1_KiB, 2));
  EXPECT_FALSE(device.tryAllocate(0, 0));
  EXPECT_EQ(device.hostPointer(region->base), nullptr) << "there is nothing behind it";
}

TEST(OffsetDevice, RefusesABadTopology) {
  EXPECT_THROW(OffsetDevice(DeviceTopology{}), std::invalid_argument);
}

TEST(SimulatedDevice, HasMemoryBehindItsAddresses) {
  SimulatedDevice device(1_MiB);
  auto const region = device.tryAllocate(64_KiB, 0);
  ASSERT_TRUE(region);
  EXPECT_EQ(region->base % kGranule, 0U);
  std::byte* const bytes = device.hostPointer(region->base + 1_KiB);
  std::memset(bytes, 0x5A, 1_KiB);
  EXPECT_EQ(bytes[1023], std::byte{0x5A});
  EXPECT_EQ(device.bytesInUse(), 64_KiB);
  device.release(*region);
  EXPECT_EQ(device.bytesInUse(), 0U);
}

TEST(SimulatedDevice, CostsOnlyWhatIsTouched) {
  SimulatedDevice device(110_GiB);
  EXPECT_TRUE(device.tryAllocate(110_GiB, 0));
}

TEST(SimulatedDevice, LimitsTheEntriesOfItsTable) {
  SimulatedDevice device({.topology = singleDomain(1_MiB), .table_entries = 2});
  auto const first = device.tryAllocate(1_KiB, 0);
  EXPECT_TRUE(device.tryAllocate(1_KiB, 0));
  EXPECT_FALSE(device.tryAllocate(1_KiB, 0));
  device.release(*first);
  EXPECT_TRUE(device.tryAllocate(1_KiB, 0));
}

TEST(SimulatedDevice, LimitsTheBytesOfARegion) {
  SimulatedDevice device({.topology = singleDomain(1_MiB), .max_region_bytes = 4_KiB});
  EXPECT_EQ(device.maxRegionBytes(), 4_KiB);
  EXPECT_FALSE(device.tryAllocate(5_KiB, 0));
  EXPECT_TRUE(device.tryAllocate(4_KiB, 0));
}

TEST(SimulatedDevice, LimitsAllRegionsTogether) {
  SimulatedDevice device({.topology = {{1_MiB, 1_MiB}, {}}, .budget_bytes = 8_KiB});
  EXPECT_EQ(device.maxRegionBytes(), 8_KiB);
  EXPECT_TRUE(device.tryAllocate(6_KiB, 0));
  EXPECT_FALSE(device.tryAllocate(4_KiB, 1));
  EXPECT_TRUE(device.tryAllocate(2_KiB, 1));
}

TEST(SimulatedDevice, LimitsEveryDomain) {
  SimulatedDevice device({.topology = {{1_KiB, 4_KiB}, {}}});
  EXPECT_FALSE(device.tryAllocate(2_KiB, 0));
  EXPECT_TRUE(device.tryAllocate(4_KiB, 1));
  EXPECT_FALSE(device.tryAllocate(1_KiB, 1));
  EXPECT_FALSE(device.tryAllocate(1_KiB, 2));
  EXPECT_FALSE(device.tryAllocate(0, 0));
}

TEST(SimulatedDevice, FailsTheNthCallAndOnlyThat) {
  SimulatedDevice device({.topology = singleDomain(1_MiB), .fail_on_call = 2});
  EXPECT_TRUE(device.tryAllocate(1_KiB, 0));
  EXPECT_FALSE(device.tryAllocate(1_KiB, 0));
  EXPECT_TRUE(device.tryAllocate(1_KiB, 0));
  EXPECT_EQ(device.calls(), 3U);
  device.failOnCall(1);
  EXPECT_FALSE(device.tryAllocate(1_KiB, 0));
  EXPECT_TRUE(device.tryAllocate(1_KiB, 0));
  device.failOnCall(1);
  device.failOnCall(0);
  EXPECT_TRUE(device.tryAllocate(1_KiB, 0));
}

TEST(SimulatedDevice, TakesItsTime) {
  auto const latency = std::chrono::milliseconds(20);
  SimulatedDevice device({.topology = singleDomain(1_MiB), .latency = latency});
  auto const before = std::chrono::steady_clock::now();
  EXPECT_TRUE(device.tryAllocate(1_KiB, 0));
  EXPECT_GE(std::chrono::steady_clock::now() - before, latency);
}

TEST(SimulatedDevice, ToleratesAReleaseOfWhatItDoesNotHold) {
  SimulatedDevice device(1_MiB);
  auto const region = device.tryAllocate(1_KiB, 0);
  device.release(*region);
  device.release(*region);
  EXPECT_EQ(device.bytesInUse(), 0U);
}

}  // namespace
}  // namespace flex
