// SPDX-License-Identifier: Apache-2.0
// Texts a person can act on. // cases 85, 86
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <flex/bytes.hpp>
#include <flex/error.hpp>

namespace flex {
namespace {

OutOfMemoryInfo infoFor(FailureReason reason) {
  return {.requested = 3 * kGiB + kGiB / 2,
          .free = 4 * kGiB,
          .largest_free = 1 * kGiB,
          .total = 8 * kGiB,
          .domain = 2,
          .memory_type = MemoryType::program,
          .reclaims = 1,
          .bytes_reclaimed = 64 * kMiB,
          .waited_ms = 12.34,
          .reason = reason};
}

std::string textFor(FailureReason reason) { return OutOfMemoryError(infoFor(reason)).what(); }

bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST(OutOfMemoryError, SaysEverythingThatIsKnownInHumanUnits) {
  std::string const text = textFor(FailureReason::fragmented);
  for (char const* part : {"3.50 GiB", "4.00 GiB", "8.00 GiB", "1.00 GiB", "domain 2", "program",
                           "1 reclaim freed", "64.00 MiB", "12.3 ms", "fragmented"}) {
    EXPECT_TRUE(has(text, part)) << part << " is missing in: " << text;
  }
}

TEST(OutOfMemoryError, TellsExhaustedFromFragmentedFromTooLarge) {
  EXPECT_TRUE(has(textFor(FailureReason::exhausted), "less is free"));
  EXPECT_TRUE(has(textFor(FailureReason::fragmented), "not in one piece"));
  EXPECT_TRUE(has(textFor(FailureReason::larger_than_any_region), "no region"));
}

TEST(OutOfMemoryError, HasANameAndATextOfItsOwnForEveryReason) {
  std::set<std::string> names;
  std::set<std::string> texts;
  for (std::size_t i = 0; i < kFailureReasons; ++i) {
    auto const reason = static_cast<FailureReason>(i);
    names.emplace(toString(reason));
    texts.insert(textFor(reason));
  }
  EXPECT_EQ(names.size(), kFailureReasons);
  EXPECT_EQ(texts.size(), kFailureReasons);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(OutOfMemoryError, GivesEveryNumberToPrograms) {
  OutOfMemoryError const error(infoFor(FailureReason::timed_out));
  EXPECT_EQ(error.requested(), 3 * kGiB + kGiB / 2);
  EXPECT_EQ(error.free(), 4 * kGiB);
  EXPECT_EQ(error.largestFree(), 1 * kGiB);
  EXPECT_EQ(error.total(), 8 * kGiB);
  EXPECT_EQ(error.reclaims(), 1U);
  EXPECT_EQ(error.reason(), FailureReason::timed_out);
  EXPECT_EQ(error.cause(), nullptr);
}

TEST(OutOfMemoryError, IsABadAllocThatCarriesItsCause) {
  try {
    throw OutOfMemoryError(infoFor(FailureReason::callback_failed),
                           std::make_exception_ptr(std::runtime_error("why")));
  } catch (std::bad_alloc const& error) {
    auto const& full = dynamic_cast<OutOfMemoryError const&>(error);
    EXPECT_THROW(std::rethrow_exception(full.cause()), std::runtime_error);
  }
}

TEST(OutOfMemoryError, AddsTheNoteOnlyIfThereIsOne) {
  OutOfMemoryInfo info = infoFor(FailureReason::exhausted);
  EXPECT_FALSE(has(OutOfMemoryError(info).what(), "()"));
  info.note = "5 objects are frozen";
  EXPECT_TRUE(has(OutOfMemoryError(info).what(), "5 objects are frozen"));
}

}  // namespace
}  // namespace flex
