// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include <gtest/gtest.h>

#include <flex/bytes.hpp>

#include "byte_literals.hpp"

namespace flex {
namespace {

using namespace test::literals;

TEST(Bytes, RoundsToTheGranule) {
  EXPECT_EQ(roundUpToGranule(1), 128U);
  EXPECT_EQ(roundUpToGranule(128), 128U);
  EXPECT_EQ(roundUpToGranule(129), 256U);
  EXPECT_EQ(roundDownToGranule(127), 0U);
  EXPECT_EQ(roundDownToGranule(255), 128U);
}

TEST(Bytes, FormatsInHumanUnits) {
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(1_KiB), "1.00 KiB");
  EXPECT_EQ(formatBytes(1_MiB + 512_KiB), "1.50 MiB");
  EXPECT_EQ(formatBytes(110_GiB), "110.00 GiB");
  EXPECT_EQ(formatBytes(~std::uint64_t{0}), "16.00 EiB");
}

TEST(Bytes, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parseBytes("4096"), 4096U);
  EXPECT_EQ(parseBytes("0"), 0U);
  EXPECT_EQ(parseBytes("12B"), 12U);
  EXPECT_EQ(parseBytes("64KiB"), 64_KiB);
  EXPECT_EQ(parseBytes(" 1.5 GiB "), 1_GiB + 512_MiB);
  EXPECT_EQ(parseBytes("8g"), 8_GiB);
  EXPECT_EQ(parseBytes("2MB"), 2'000'000U);
  EXPECT_EQ(parseBytes("1tb"), 1'000'000'000'000U);
  EXPECT_EQ(parseBytes(".5k"), 512U);
}

TEST(Bytes, ReadsLargeCountsExactly) {
  EXPECT_EQ(parseBytes("18446744073709551615"), ~std::uint64_t{0});
  EXPECT_EQ(parseBytes("9007199254740993"), 9'007'199'254'740'993U);
}

TEST(Bytes, RefusesWhatIsNoSize) {
  for (char const* text : {"", " ", ".", "KiB", "-1", "+1", "1e9", "0x10", "nan", "1.2.3", "1.5",
                           "1.5B", "12 apples", "1 2", "1KiBB"}) {
    EXPECT_THROW((void)parseBytes(text), std::invalid_argument) << text;
  }
}

TEST(Bytes, RefusesWhatDoesNotFit) {
  for (char const* text : {"18446744073709551616", "16777216TiB", "99999999999999999999999"}) {
    EXPECT_THROW((void)parseBytes(text), std::overflow_error) << text;
  }
}

TEST(Bytes, SaysWhatWasGivenAndWhatIsAllowed) {
  try {
    (void)parseBytes("two");
    FAIL();
  } catch (std::invalid_argument const& error) {
    std::string const text = error.what();
    EXPECT_NE(text.find("'two'"), std::string::npos);
    EXPECT_NE(text.find("64KiB"), std::string::npos);
  }
}

}  // namespace
}  // namespace flex
