// SPDX-License-Identifier: Apache-2.0
// A registration has one owner.

#include <utility>

#include <flex/callback_handle.hpp>

flex::CallbackHandle take(flex::CallbackHandle&& handle) {
#if FLEXALLOC_MISUSE
  flex::CallbackHandle copy = std::as_const(handle);
  return copy;
#else
  return std::move(handle);
#endif
}
