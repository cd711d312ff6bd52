// SPDX-License-Identifier: Apache-2.0
#include <flex/composite_address.hpp>
#include <flex/detail/engine.hpp>

namespace flex {

void CompositeAddress::reset() noexcept {
  if (engine_ == nullptr) return;
  std::exchange(engine_, nullptr)->giveBack(chunks_);
  chunks_.clear();
  requested_ = 0;
}

}  // namespace flex
