// SPDX-License-Identifier: Apache-2.0
// What a framework holds has one owner, too.

#include <utility>

#include <spyre/data_ptr.hpp>

spyre::DataPtr take(spyre::DataPtr&& data) {
#if FLEXALLOC_MISUSE
  spyre::DataPtr copy = std::as_const(data);
  return copy;
#else
  return std::move(data);
#endif
}
