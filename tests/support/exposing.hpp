// SPDX-License-Identifier: Apache-2.0
#pragma once
// A strategy that shows a test the allocator's mutex, and is any other strategy for the rest.

#include <flex/pressure_strategy.hpp>

namespace flex::test {

template <PressureStrategy Base>
class Exposing : public Base {
 public:
  struct Options : Base::Options {
    /// Where the mutex is told.
    sync::Mutex** mutex = nullptr;
  };

  Exposing(StrategyContext const& context, Options const& options) : Base(context, options) {
    if (options.mutex != nullptr) *options.mutex = &context.mutex;
  }
};

}  // namespace flex::test
