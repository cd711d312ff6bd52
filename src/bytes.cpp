// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <stdexcept>

#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <fmt/format.h>

#include <flex/bytes.hpp>

namespace flex {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kBinary = 1024.0;
constexpr double kDecimal = 1000.0;

constexpr std::array<Unit, 14> kUnits{{
    {"", 1.0},
    {"b", 1.0},
    {"k", kBinary},
    {"kib", kBinary},
    {"kb", kDecimal},
    {"m", kBinary* kBinary},
    {"mib", kBinary* kBinary},
    {"mb", kDecimal* kDecimal},
    {"g", kBinary* kBinary* kBinary},
    {"gib", kBinary* kBinary* kBinary},
    {"gb", kDecimal* kDecimal* kDecimal},
    {"t", kBinary* kBinary* kBinary* kBinary},
    {"tib", kBinary* kBinary* kBinary* kBinary},
    {"tb", kDecimal* kDecimal* kDecimal* kDecimal},
}};

[[noreturn]] void throwNotASize(std::string_view text) {
  throw std::invalid_argument(
      fmt::format("'{}' is not a size: write bytes (4096) or a number with a unit (\"64KiB\", "
                  "\"1.5GiB\", \"2MB\")",
                  text));
}

/// Digits with at most one point; nothing else, so that "1e9", "0x10", "nan" and "-1" are refused.
bool isPlainNumber(std::string_view digits) {
  bool seen_digit = false;
  bool seen_point = false;
  for (char const c : digits) {
    if (c >= '0' && c <= '9') {
      seen_digit = true;
    } else if (c == '.' && !seen_point) {
      seen_point = true;
    } else {
      return false;
    }
  }
  return seen_digit;
}

}  // namespace

std::string formatBytes(std::uint64_t nbytes) {
  if (nbytes < kKiB) return fmt::format("{} B", nbytes);
  static constexpr std::array<char const*, 6> kNames{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  double value = static_cast<double>(nbytes) / kBinary;
  while (value >= kBinary && unit + 1 < kNames.size()) {
    value /= kBinary;
    ++unit;
  }
  return fmt::format("{:.2f} {}", value, kNames[unit]);
}

std::uint64_t parseBytes(std::string_view text) {
  std::string const lowered = boost::to_lower_copy(boost::trim_copy(std::string(text)));
  std::size_t const unit_begin = std::min(lowered.find_first_not_of("0123456789."), lowered.size());
  std::string const digits = lowered.substr(0, unit_begin);
  std::string const unit_name = boost::trim_copy(lowered.substr(unit_begin));
  if (!isPlainNumber(digits)) throwNotASize(text);
  for (Unit const& unit : kUnits) {
    if (unit.name != unit_name) continue;
    if (unit.factor == 1.0) {  // whole bytes are exact, beyond what a double holds
      if (digits.find('.') != std::string::npos) throwNotASize(text);
      try {
        return std::stoull(digits);
      } catch (std::out_of_range const&) {
        throw std::overflow_error(fmt::format("size '{}' does not fit 64 bits", text));
      }
    }
    double const value = std::stod(digits) * unit.factor;
    if (!(value < std::ldexp(1.0, 64))) {
      throw std::overflow_error(fmt::format("size '{}' does not fit 64 bits", text));
    }
    return static_cast<std::uint64_t>(value);
  }
  throwNotASize(text);
}

}  // namespace flex
