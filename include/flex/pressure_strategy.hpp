// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the allocator asks of a pressure strategy. docs/writing_a_strategy.md walks through one.

#include <concepts>
#include <string_view>

#include <flex/pressure_request.hpp>
#include <flex/sync/mutex.hpp>

namespace flex {

/// Decides what happens when a request meets exhaustion: who runs the callbacks, who waits, who
/// gets what comes back, when a request fails. All members are called with the allocator's mutex
/// held; only resolve() may let go of it, through its arguments.
///
///   S::kName         the strategy's name for people and for Python
///   S::Options       what a user may set; default-constructible
///   S(context, o)    keeps the context's references: they outlive the strategy
///   admit()          may a request that has just arrived search the pool?  Asked for every
///                    allocation, so it must cost next to nothing.
///   onServedAtOnce() a request that admit() let in was served without resolve()
///   resolve(l, r)    called when admit() said no, or at true exhaustion.  Returns what became of
///                    the request; if it throws, the request must not be left anywhere.
///   onFree()         blocks came back; hand them to whoever waits for them
///   wakeAll()        make every sleeping request look again
///   resetAfterFork(r) in a forked child: forget the requests of all other threads, which do not
///                    exist there; `r`: the calling thread is inside a callback
// clang-format off
template <class S>
concept PressureStrategy =
    std::default_initializable<typename S::Options> &&
    std::constructible_from<S, StrategyContext const&, typename S::Options const&> &&
    requires(S strategy, Lock& lock, PressureRequest& request) {
      { S::kName } -> std::convertible_to<std::string_view>;
      { strategy.admit() } noexcept -> std::same_as<bool>;
      { strategy.onServedAtOnce() } noexcept -> std::same_as<void>;
      { strategy.resolve(lock, request) } -> std::same_as<Verdict>;
      { strategy.onFree() } noexcept -> std::same_as<void>;
      { strategy.wakeAll() } noexcept -> std::same_as<void>;
      { strategy.resetAfterFork(true) } noexcept -> std::same_as<void>;
    };
// clang-format on

}  // namespace flex
