// SPDX-License-Identifier: Apache-2.0
#include <flex/detail/callout.hpp>

namespace flex::detail {
namespace {

thread_local Callout* innermost = nullptr;

}  // namespace

Callout::Callout(Engine const& engine, Lock& lock) noexcept
    : engine_(engine), lock_(lock), outer_(innermost) {
  innermost = this;
}

Callout::~Callout() { innermost = outer_; }

Callout* Callout::find(Engine const& engine) noexcept {
  for (Callout* callout = innermost; callout != nullptr; callout = callout->outer_) {
    if (&callout->engine_ == &engine) return callout;
  }
  return nullptr;
}

bool Callout::holds(sync::Mutex const& mutex) noexcept {
  for (Callout* callout = innermost; callout != nullptr; callout = callout->outer_) {
    if (callout->lock_.owns(mutex)) return true;
  }
  return false;
}

std::uint32_t Callout::count(Engine const& engine) noexcept {
  std::uint32_t count = 0;
  for (Callout* callout = innermost; callout != nullptr; callout = callout->outer_) {
    if (&callout->engine_ == &engine) ++count;
  }
  return count;
}

}  // namespace flex::detail
