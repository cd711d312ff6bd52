// SPDX-License-Identifier: Apache-2.0
#pragma once
// Statistics as dicts.

#include <boost/python.hpp>

#include <flex/statistics.hpp>

#include "python_gc.hpp"

namespace spyre_alloc {

[[nodiscard]] boost::python::dict memoryStatsDict(flex::Statistics const& statistics);
[[nodiscard]] boost::python::dict pressureStatsDict(flex::PressureStatistics const& pressure,
                                                    GcStatistics const& gc);

}  // namespace spyre_alloc
