// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes that read as sizes.

#include <cstdint>

namespace flex::test {

inline namespace literals {

// NOLINTBEGIN(google-runtime-int): the standard prescribes the parameter's type
constexpr std::uint64_t operator""_B(unsigned long long count) { return count; }
constexpr std::uint64_t operator""_KiB(unsigned long long count) { return count * 1024; }
constexpr std::uint64_t operator""_MiB(unsigned long long count) { return count * 1024 * 1024; }
constexpr std::uint64_t operator""_GiB(unsigned long long count) { return count << 30U; }
// NOLINTEND(google-runtime-int)

}  // namespace literals
}  // namespace flex::test
