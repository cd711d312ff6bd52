// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace spyre_alloc {

/// DeviceMemory, SimulatedDevice, OffsetDevice.
void exposeDevices();

}  // namespace spyre_alloc
