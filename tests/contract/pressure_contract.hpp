// SPDX-License-Identifier: Apache-2.0
#pragma once
// The strategies that the suite PressureContract is run for. A further one is a line in each list.

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <flex/strategies/hold_mutex_during_callback.hpp>
#include <flex/strategies/release_and_condvar.hpp>

#include "fail_fast.hpp"
#include "sandbox.hpp"

namespace flex::test {

using ContractStrategies = ::testing::Types<  //
    HoldMutexDuringCallback,                  //
    ReleaseAndCondvar,                        //
    FailFast                                  // the one in examples/
    >;

struct StrategyName {
  template <class Strategy>
  static std::string GetName(int /*index*/) {  // NOLINT(readability-identifier-naming): gtest's
    std::string name(Strategy::kName);
    std::ranges::replace(name, '-',
                         '_');  // a filter would take what follows a '-' for an exclusion
    return name;
  }
};

template <class Strategy>
class PressureContract : public ::testing::Test {};

TYPED_TEST_SUITE(PressureContract, ContractStrategies, StrategyName);

}  // namespace flex::test
