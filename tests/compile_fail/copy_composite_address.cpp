// SPDX-License-Identifier: Apache-2.0
// Memory has one owner: an address can be moved, not copied.

#include <utility>

#include <flex/composite_address.hpp>

flex::CompositeAddress take(flex::CompositeAddress&& address) {
#if FLEXALLOC_MISUSE
  flex::CompositeAddress copy = std::as_const(address);
  return copy;
#else
  return std::move(address);
#endif
}
