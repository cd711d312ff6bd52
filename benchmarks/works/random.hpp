// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers that are the same on every machine.

#include <cmath>
#include <cstdint>

namespace flexbench {

/// SplitMix64: small, and good enough to draw sizes and places.
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {
    std::uint64_t mixed = state_ += 0x9E3779B97F4A7C15U;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
    return mixed ^ (mixed >> 31);
  }
  /// In [0, 1).
  double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// In [0, bound). Requires: bound < 2^32.
  std::uint32_t below(std::uint64_t bound) noexcept {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

 private:
  std::uint64_t state_;
};

/// Sizes whose logarithm is uniform: as many between 1 and 2 KiB as between 1 and 2 MiB.
struct LogUniformSizes {
  std::uint32_t smallest;
  std::uint32_t largest;

  [[nodiscard]] std::uint32_t draw(Random& random) const noexcept {
    double const ratio = static_cast<double>(largest) / smallest;
    return static_cast<std::uint32_t>(smallest * std::pow(ratio, random.unit()));
  }
  [[nodiscard]] double mean() const noexcept {
    return (static_cast<double>(largest) - smallest) /
           std::log(static_cast<double>(largest) / smallest);
  }
};

inline constexpr LogUniformSizes kAnySize{128, 16U << 20};
inline constexpr LogUniformSizes kSmallSize{128, 1U << 20};

}  // namespace flexbench
