// SPDX-License-Identifier: Apache-2.0
#pragma once
// What can be said about memory pressure: the event, what a callback answers, the callback itself.

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <flex/directive.hpp>
#include <flex/error.hpp>
#include <flex/sync/mutex.hpp>

namespace flex {

/// Number of reclaims started so far. A reclaim numbered above what a request saw on arrival began
/// after that request, and so may have freed all that was garbage when it arrived.
using Generation = std::uint64_t;

/// A request that met exhaustion, as a callback sees it. Sizes in bytes; free, largest_free and
/// total speak of the wanted domains and memory type just before the callback is entered.
struct PressureEvent {
  std::uint64_t requested = 0;
  std::uint64_t free = 0;
  std::uint64_t largest_free = 0;
  std::uint64_t total = 0;
  std::optional<DomainId> domain = std::nullopt;  ///< set where the request named just one
  MemoryType memory_type = MemoryType::tensor;
  std::uint32_t attempt = 1;  ///< how often this request has been searched for in vain, from 1
  Generation generation = 0;  ///< of the reclaim that runs this callback
};

/// Thrown (as a base of an exception) by a callback or a poll to end the request as it is, whatever
/// CallbackErrors says: an interruption of the program, not a failure to free memory.
class AbortRequest {
 public:
  AbortRequest() = default;
  AbortRequest(AbortRequest const&) = default;
  AbortRequest& operator=(AbortRequest const&) = default;
  virtual ~AbortRequest() = default;
};

/// What a callback did.
struct ReclaimResult {
  enum class Outcome : std::uint8_t {
    done,          ///< it did what it can do, whether or not that freed anything
    skipped,       ///< it chose not to (a budget is used up, say); asking again now is useless
    not_possible,  ///< it could not on this thread or at this time; another try may
  };

  Outcome outcome = Outcome::done;
  /// If the request fails in the end: its reason, and a remark for the error's text.
  std::optional<FailureReason> reason = std::nullopt;
  std::string note = {};
};

/// Frees memory when it is short. Any callable `void(Lock&)` or
/// `ReclaimResult(Lock&, PressureEvent const&)`; nullptr is none.
///
/// Runs on the requesting thread. Under HoldMutexDuringCallback it is entered with the mutex held
/// and must unlock around whatever blocks; under ReleaseAndCondvar the mutex is free already, and
/// lock.unlock() does nothing. It may allocate (served from what is free, or fails at once), free,
/// throw, register and unregister callbacks, itself included.
class MemoryPressureCallback {
 public:
  using Function = std::function<ReclaimResult(Lock&, PressureEvent const&)>;

  MemoryPressureCallback() = default;
  MemoryPressureCallback(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)

  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, MemoryPressureCallback> &&
           std::copy_constructible<std::decay_t<F>> &&
           (std::is_invocable_r_v<ReclaimResult, F&, Lock&, PressureEvent const&> ||
            std::is_invocable_v<F&, Lock&>))
      MemoryPressureCallback(F&& callback) {  // NOLINT(google-explicit-constructor)
    // An empty std::function or a null function pointer is no callback. A lambda converts to bool,
    // too, by way of a pointer that is never null.
    if constexpr (std::is_pointer_v<std::decay_t<F>> || requires { callback.operator bool(); }) {
      if (!static_cast<bool>(callback)) return;
    }
    if constexpr (std::is_invocable_r_v<ReclaimResult, F&, Lock&, PressureEvent const&>) {
      function_ = std::forward<F>(callback);
    } else {
      function_ = [callback = std::forward<F>(callback)](Lock& lock, PressureEvent const&) mutable {
        callback(lock);
        return ReclaimResult{};
      };
    }
  }

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(function_); }

  ReclaimResult operator()(Lock& lock, PressureEvent const& event) const {
    return function_(lock, event);
  }

 private:
  Function function_;
};

}  // namespace flex
