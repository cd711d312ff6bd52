// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include <gtest/gtest.h>

#include <flex/topology.hpp>

namespace flex {
namespace {

TEST(DeviceTopology, CountsDistanceByNumberWithoutAMatrix) {
  DeviceTopology const topology{{1, 1, 1}, {}};
  EXPECT_EQ(topology.domainCount(), 3U);
  EXPECT_EQ(topology.distanceBetween(2, 0), 2U);
  EXPECT_EQ(topology.distanceBetween(0, 2), 2U);
  EXPECT_EQ(topology.distanceBetween(1, 1), 0U);
}

TEST(DeviceTopology, TakesDistanceFromItsMatrix) {
  DeviceTopology const topology{{1, 1}, {{0, 7}, {9, 0}}};
  EXPECT_NO_THROW(topology.validate());
  EXPECT_EQ(topology.distanceBetween(0, 1), 7U);
  EXPECT_EQ(topology.distanceBetween(1, 0), 9U);
}

TEST(DeviceTopology, RefusesNoneAndTooManyDomains) {
  EXPECT_THROW(DeviceTopology{}.validate(), std::invalid_argument);
  DeviceTopology topology;
  topology.domain_capacity.assign(kMaxDomains, 1);
  EXPECT_NO_THROW(topology.validate());
  topology.domain_capacity.push_back(1);
  EXPECT_THROW(topology.validate(), std::invalid_argument);
}

TEST(DeviceTopology, RefusesAMatrixOfAnotherShape) {
  EXPECT_THROW((DeviceTopology{{1, 1}, {{0, 1}}}.validate()), std::invalid_argument);
  EXPECT_THROW((DeviceTopology{{1, 1}, {{0, 1}, {1}}}.validate()), std::invalid_argument);
}

}  // namespace
}  // namespace flex
