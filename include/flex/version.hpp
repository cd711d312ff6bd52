// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one source of the version: CMake, the package and Python read it from here.

#include <string_view>

namespace flex {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace flex
