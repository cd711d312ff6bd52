// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <flex/sync/clock.hpp>

namespace flex {
namespace {

class SteadyClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return sync::steadyNow(); }

  void park(sync::Parker& parker, TimePoint until) override {
    constexpr Duration kSlice = std::chrono::milliseconds(100);
    parker.park(std::clamp(until - now(), Duration::zero(), kSlice));
  }
};

}  // namespace

std::shared_ptr<Clock> steadyClock() {
  static std::shared_ptr<Clock> const clock = std::make_shared<SteadyClock>();
  return clock;
}

}  // namespace flex
