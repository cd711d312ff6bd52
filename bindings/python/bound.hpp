// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one way in which Python calls C++.

#include <type_traits>
#include <utility>

#include "gil.hpp"

namespace spyre_alloc {

template <class F>
struct BoundSignature;

template <class R, class... Arguments>
struct BoundSignature<R (*)(Arguments...)> {
  template <auto F>
  static R call(Arguments... arguments) {
    return parkingIfEnded([&]() -> R { return F(std::forward<Arguments>(arguments)...); });
  }
};

template <class R, class... Arguments>
struct BoundSignature<R (*)(Arguments...) noexcept> : BoundSignature<R (*)(Arguments...)> {};

template <class R, class C, class... Arguments>
struct BoundSignature<R (C::*)(Arguments...)> {
  template <auto F>
  static R call(C& self, Arguments... arguments) {
    return parkingIfEnded([&]() -> R { return (self.*F)(std::forward<Arguments>(arguments)...); });
  }
};

template <class R, class C, class... Arguments>
struct BoundSignature<R (C::*)(Arguments...) const> {
  template <auto F>
  static R call(C const& self, Arguments... arguments) {
    return parkingIfEnded([&]() -> R { return (self.*F)(std::forward<Arguments>(arguments)...); });
  }
};

template <class R, class C, class... Arguments>
struct BoundSignature<R (C::*)(Arguments...) const noexcept>
    : BoundSignature<R (C::*)(Arguments...) const> {};

/// `F` for Boost.Python to call. Nearly everything that is bound can run Python code somewhere (an
/// __index__, a finalizer, a collection), and there the interpreter may end the thread by unwinding
/// its stack; through Boost.Python's frames that aborts the process. So the thread is parked inside
/// them. Every function, constructor and property of the module is bound through this.
template <auto F>
inline constexpr auto bound = &BoundSignature<decltype(F)>::template call<F>;

}  // namespace spyre_alloc
