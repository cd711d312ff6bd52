// SPDX-License-Identifier: Apache-2.0
#pragma once
// The device as PyTorch names it: the first of the out-of-tree back end.

#include <c10/core/Device.h>

namespace spyre_torch {

inline constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;
inline constexpr c10::DeviceIndex kDeviceCount = 1;

[[nodiscard]] inline c10::Device spyreDevice() noexcept { return {kDeviceType, 0}; }

}  // namespace spyre_torch
