// SPDX-License-Identifier: Apache-2.0
// Every option: default, smallest, largest, refused. // case 87
#include <functional>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <flex/allocator_options.hpp>

namespace flex {
namespace {

AllocatorOptions with(std::function<void(AllocatorOptions&)> const& change) {
  AllocatorOptions options;
  change(options);
  return options;
}

void expectAccepted(std::function<void(AllocatorOptions&)> const& change) {
  EXPECT_NO_THROW(with(change).validate());
}

void expectRefused(std::string const& name, std::function<void(AllocatorOptions&)> const& change) {
  try {
    with(change).validate();
    ADD_FAILURE() << name << " was accepted";
  } catch (std::invalid_argument const& error) {
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
  }
}

TEST(AllocatorOptions, DefaultsAreValid) {
  expectAccepted([](AllocatorOptions&) {});
}

TEST(AllocatorOptions, BoundsRegions) {
  expectAccepted([](auto& o) { o.regions = 1; });
  expectAccepted([](auto& o) { o.regions = kMaxRegionsPerDomain; });
  expectRefused("regions", [](auto& o) { o.regions = 0; });
  expectRefused("regions", [](auto& o) { o.regions = kMaxRegionsPerDomain + 1; });
}

TEST(AllocatorOptions, BoundsRegionSizes) {
  expectAccepted([](auto& o) { o.max_region_bytes = kGranule; });
  expectRefused("max_region_bytes", [](auto& o) { o.max_region_bytes = kGranule - 1; });
  expectAccepted([](auto& o) { o.fallback_sizes = {kGranule}; });
  expectRefused("fallback_sizes", [](auto& o) { o.fallback_sizes = {kGiB, kGranule - 1}; });
  expectAccepted([](auto& o) { o.fallback_sizes.clear(); });
  expectRefused("fallback_sizes", [](auto& o) {
    o.acquisition = Acquisition::on_demand;
    o.fallback_sizes.clear();
  });
}

TEST(AllocatorOptions, BoundsWaits) {
  expectAccepted([](auto& o) { o.max_wait = Duration::zero(); });
  expectAccepted([](auto& o) { o.max_wait = kLongestWait; });
  expectRefused("max_wait", [](auto& o) { o.max_wait = Duration(-1); });
  expectRefused("max_wait", [](auto& o) { o.max_wait = kLongestWait + Duration(1); });
}

TEST(AllocatorOptions, NeedsAClock) {
  expectRefused("clock", [](auto& o) { o.clock = nullptr; });
}

}  // namespace
}  // namespace flex
