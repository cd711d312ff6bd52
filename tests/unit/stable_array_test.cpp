// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <new>

#include <gtest/gtest.h>

#include <flex/detail/stable_array.hpp>

namespace flex::detail {
namespace {

TEST(StableArray, GrowsWithoutMovingAnything) {
  StableArray<std::uint64_t> array(1'000'000);
  EXPECT_EQ(array.size(), 0U);
  ASSERT_TRUE(array.tryGrow());
  std::uint64_t* const first = &array[0];
  array[0] = 42;
  std::size_t const before = array.size();
  while (array.tryGrow()) {
  }
  EXPECT_GT(array.size(), before);
  EXPECT_EQ(array.size(), 1'000'000U);
  EXPECT_EQ(&array[0], first);
  EXPECT_EQ(array[0], 42U);
  EXPECT_EQ(array[999'999], 0U) << "elements start as zero";
}

TEST(StableArray, LaysWhatMayBecomeLargeOnHugePages) {
  constexpr std::size_t kElements = kHugeArray / sizeof(std::uint64_t) + 1;
  StableArray<std::uint64_t> array(kElements);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&array[0]) % kHugePage, 0U);
  ASSERT_TRUE(array.tryGrow());
  EXPECT_EQ(array.size(), kHugePage / sizeof(std::uint64_t));
  while (array.tryGrow()) {
  }
  ASSERT_EQ(array.size(), kElements);
  array[kElements - 1] = 42;
  EXPECT_EQ(array[kElements - 1], 42U);
}

TEST(StableArray, StopsAtItsLimit) {
  StableArray<std::uint32_t> array(3);
  EXPECT_TRUE(array.tryGrow());
  EXPECT_EQ(array.size(), 3U);
  EXPECT_FALSE(array.tryGrow());
}

TEST(StableArray, SaysWhenThereIsNoAddressSpace) {
  EXPECT_THROW(StableArray<std::uint64_t>(std::size_t{1} << 58U), std::bad_alloc);
}

}  // namespace
}  // namespace flex::detail
