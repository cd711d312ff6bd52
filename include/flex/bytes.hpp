// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes as people read and write them.

#include <cstdint>
#include <string>
#include <string_view>

namespace flex {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

/// Every block starts at a multiple of this many bytes and is a multiple of it long.
inline constexpr std::uint64_t kGranule = 128;

/// `nbytes` rounded up to the granule. Requires: the result fits 64 bits.
[[nodiscard]] constexpr std::uint64_t roundUpToGranule(std::uint64_t nbytes) noexcept {
  return (nbytes + kGranule - 1) / kGranule * kGranule;
}

[[nodiscard]] constexpr std::uint64_t roundDownToGranule(std::uint64_t nbytes) noexcept {
  return nbytes / kGranule * kGranule;
}

/// "640 B", "1.50 MiB": at most three significant decimals, binary units.
[[nodiscard]] std::string formatBytes(std::uint64_t nbytes);

/// Reads "4096", "64KiB", "1.5 GiB", "2MB", "8G" (KiB, MiB, GiB, TiB and K, M, G, T are powers of
/// 1024; KB, MB, GB, TB powers of 1000; case does not matter; "B" is optional).
/// Throws std::invalid_argument (not a size) or std::overflow_error (beyond 64 bits).
[[nodiscard]] std::uint64_t parseBytes(std::string_view text);

}  // namespace flex
