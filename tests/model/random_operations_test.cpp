// SPDX-License-Identifier: Apache-2.0
// The allocator and the model do the same, and agree after every step. // case 88

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "sandbox.hpp"
#include "slow_model.hpp"

namespace flex::test {
namespace {

constexpr std::uint64_t kRegionBytes = 64 * kBlock;
constexpr std::uint32_t kRegionsPerDomain = 3;
constexpr DomainId kDomains = 2;

struct Program {
  Acquisition acquisition = Acquisition::upfront;
  RegionOrder order = RegionOrder::most_free;
  std::uint64_t steps = 0;

  // The names of the tests must not depend on padding bytes.
  friend void PrintTo(Program const& program, std::ostream* out) {
    *out << (program.acquisition == Acquisition::upfront ? "upfront" : "on demand") << ", "
         << (program.order == RegionOrder::most_free ? "most free" : "least free");
  }
};

std::uint64_t seedFor(Program const& program) {
  std::uint64_t seed = 20'260'101;
  if (char const* const text = std::getenv("FLEXALLOC_TEST_SEED")) {
    seed = std::strtoull(text, nullptr, 10);
  } else if (::testing::UnitTest::GetInstance()->random_seed() != 0) {
    seed = static_cast<std::uint64_t>(::testing::UnitTest::GetInstance()->random_seed());
  }
  return seed * 8 + static_cast<std::uint64_t>(program.acquisition) * 2 +
         static_cast<std::uint64_t>(program.order);
}

/// A run of one program. All regions are of one size, which keeps the model slow and obvious.
class Play {
 public:
  Play(Program const& program, std::uint64_t seed)
      : program_(program), random_(seed), box_(optionsFor(program), topology()) {}

  void step() {
    std::uint64_t const kind = below(100);
    if (kind < 48) {
      allocate();
    } else if (kind < 94) {
      release();
    } else if (kind < 96) {
      EXPECT_EQ(box_->trim(), emptyRegions() * kRegionBytes);
      EXPECT_EQ(emptyRegions(), 0U);
    } else if (kind < 98) {
      breakOrMendDevice();
    } else {
      box_->resetPeakStatistics();
      box_->resetAccumulatedStatistics();
    }
    compare();
  }

  void finish() {
    while (!live_.empty()) release();
    compare();
    EXPECT_GT(failures_, program_.steps / 1000) << "memory was never short";
    EXPECT_GT(successes_, program_.steps / 10);
  }

 private:
  static DeviceTopology topology() {
    DeviceTopology topology;
    topology.domain_capacity.assign(kDomains, kRegionsPerDomain * kRegionBytes);
    return topology;
  }
  static AllocatorOptions optionsFor(Program const& program) {
    AllocatorOptions options = onDemand(kRegionsPerDomain, kRegionBytes);
    options.acquisition = program.acquisition;
    options.max_region_bytes = kRegionBytes;
    options.region_order = program.order;
    options.max_wait = Duration::zero();
    return options;
  }

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  AllocationDirective directive() {
    AllocationDirective directive;
    switch (below(6)) {
      case 0:
        directive.domain_ids = {static_cast<DomainId>(below(kDomains))};
        break;
      case 1:
        directive.near = static_cast<DomainId>(below(kDomains));
        break;
      case 2:
        directive.policy = PlacementPolicy::interleave;
        break;
      case 3:
        directive.policy = PlacementPolicy::scatter;
        break;
      case 4:
        directive.domain_ids = {1, 0};
        break;
      default:
        break;
    }
    return directive;
  }

  std::uint64_t size() {
    switch (below(8)) {
      case 0:
        return 1 + below(128);
      case 1:
        return 1 + below(kRegionBytes + kBlock);
      case 2:
        return kRegionBytes / 4;
      default:
        return 1 + below(4 * kBlock);
    }
  }

  /// Whether a used region has room for it in one piece where the directive allows it.
  [[nodiscard]] bool fits(std::uint64_t nbytes, AllocationDirective const& where) const {
    if (where.policy == PlacementPolicy::interleave) return false;  // not the model's to say
    return std::ranges::any_of(model_.regions, [&](auto const& entry) {
      auto const& named = where.domain_ids;
      bool const allowed =
          named.empty() || std::ranges::find(named, entry.second.domain) != named.end();
      return allowed && entry.second.largest() >= roundUpToGranule(nbytes);
    });
  }

  void allocate() {
    std::uint64_t const nbytes = size();
    AllocationDirective const where = directive();
    bool const must_fit = fits(nbytes, where);
    CompositeAddress address;
    try {
      address = box_->allocate(nbytes, where);
    } catch (OutOfMemoryError const& error) {
      ++failures_;
      EXPECT_FALSE(must_fit) << error.what();
      return;
    }
    ++successes_;
    requested_ += nbytes;
    EXPECT_EQ(address.nbytes(), nbytes);
    std::string const wrong = model_.take(address, kRegionBytes);
    EXPECT_TRUE(wrong.empty()) << wrong;
    checkPlacement(address, where, nbytes);
    live_.push_back(std::move(address));
  }

  static void checkPlacement(CompositeAddress const& address, AllocationDirective const& where,
                             std::uint64_t nbytes) {
    auto const chunks = address.chunks();
    std::uint64_t sum = 0;
    for (Chunk const& chunk : chunks) sum += chunk.nbytes;
    if (where.policy == PlacementPolicy::interleave) {
      ASSERT_EQ(chunks.size(), kDomains);
      EXPECT_EQ(chunks[0].nbytes, chunks[1].nbytes);
      EXPECT_NE(chunks[0].domain, chunks[1].domain);
      EXPECT_GE(sum, nbytes);
      return;
    }
    EXPECT_EQ(sum, roundUpToGranule(nbytes));
    if (where.policy == PlacementPolicy::bind) {
      EXPECT_EQ(chunks.size(), 1U);
    }
    if (where.domain_ids.size() == 1) {
      for (Chunk const& chunk : chunks) EXPECT_EQ(chunk.domain, where.domain_ids[0]);
    }
  }

  void release() {
    if (live_.empty()) return;
    std::swap(live_[below(live_.size())], live_.back());
    model_.giveBack(live_.back());
    requested_ -= live_.back().nbytes();
    if (below(2) == 0) {
      EXPECT_EQ(box_->deallocate(std::move(live_.back())), DeallocateResult::freed);
    }
    live_.pop_back();
  }

  void breakOrMendDevice() {
    ScriptedDevice::Script script;
    if (below(2) == 0) script = [](std::uint64_t) { return DeviceAnswer::refuse; };
    box_.device->follow(script);
  }

  /// Regions of which nothing is used, which the model does not know.
  [[nodiscard]] std::uint64_t emptyRegions() {
    return static_cast<std::uint64_t>(box_->statistics().regions.current) - model_.regions.size();
  }

  void compare() {
    box_->checkInvariants();
    Statistics const now = box_->statistics();
    std::uint64_t const empty = emptyRegions();
    EXPECT_LE(empty, kDomains * kRegionsPerDomain);
    EXPECT_EQ(now.free, model_.free() + empty * kRegionBytes);
    EXPECT_EQ(now.total, model_.total() + empty * kRegionBytes);
    EXPECT_EQ(now.blocks, model_.blocks() + empty);
    EXPECT_EQ(now.largest_free, empty > 0 ? kRegionBytes : model_.largest());
    EXPECT_EQ(now.allocations.current, static_cast<std::int64_t>(live_.size()));
    EXPECT_EQ(now.allocated_bytes.current, static_cast<std::int64_t>(now.total - now.free));
    EXPECT_EQ(now.requested_bytes.current, static_cast<std::int64_t>(requested_));
    EXPECT_EQ(box_.device->regionsHeld(), static_cast<std::uint64_t>(now.regions.current));
    for (Stat const& stat : {now.allocations, now.allocated_bytes, now.regions}) {
      EXPECT_GE(stat.current, 0);
      EXPECT_GE(stat.peak, stat.current);
    }
  }

  Program const program_;
  std::mt19937_64 random_;
  Sandbox<HoldMutexDuringCallback> box_;
  SlowModel model_;
  std::uint64_t requested_ = 0;
  std::uint64_t failures_ = 0;
  std::uint64_t successes_ = 0;
  std::vector<CompositeAddress> live_;
};

class RandomOperations : public ::testing::TestWithParam<Program> {};

TEST_P(RandomOperations, AgreeWithTheModelAfterEveryStep) {
  std::uint64_t const seed = seedFor(GetParam());
  std::printf("seed: %llu\n", static_cast<unsigned long long>(seed));
  SCOPED_TRACE(seed);
  Play play(GetParam(), seed);
  for (std::uint64_t i = 0; i < GetParam().steps; ++i) {
    SCOPED_TRACE(i);
    play.step();
    if (HasFailure()) break;
  }
  play.finish();
}

// A million steps in all where that takes seconds.
#ifdef NDEBUG
constexpr std::uint64_t kSteps = 250'000;
#else
constexpr std::uint64_t kSteps = 27'000;
#endif

INSTANTIATE_TEST_SUITE_P(
    Programs, RandomOperations,
    ::testing::Values(Program{Acquisition::upfront, RegionOrder::most_free, kSteps},
                      Program{Acquisition::upfront, RegionOrder::least_free, kSteps},
                      Program{Acquisition::on_demand, RegionOrder::most_free, kSteps},
                      Program{Acquisition::on_demand, RegionOrder::least_free, kSteps}));

}  // namespace
}  // namespace flex::test
