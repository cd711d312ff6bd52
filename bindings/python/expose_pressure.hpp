// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace spyre_alloc {

/// PressureEvent and GcOptions.
void exposePressure();

}  // namespace spyre_alloc
