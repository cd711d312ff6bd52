// SPDX-License-Identifier: Apache-2.0
#pragma once
// The vocabulary of failure.

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <flex/directive.hpp>

namespace flex {

/// Why a request got no memory.
enum class FailureReason : std::uint8_t {
  exhausted,               ///< less is free than was asked for, and reclaiming did not help
  fragmented,              ///< enough is free, but no single block is large enough
  larger_than_any_region,  ///< no region, present or possible, could ever hold it
  timed_out,               ///< max_wait ended before the request had its own turn to reclaim
  inside_callback,         ///< exhausted inside a pressure callback of the same allocator
  inside_finalizer,        ///< exhausted on a thread that is inside a garbage collection
  must_not_wait,           ///< exhausted, and the caller allowed neither waiting nor callbacks
  callback_failed,         ///< a callback threw and nothing else helped; see cause()
  interpreter_finalizing,  ///< the interpreter is shutting down: nothing is collected any more
  closed,                  ///< the allocator was destroyed while the request waited
};

inline constexpr std::size_t kFailureReasons = 10;

/// "exhausted", "larger-than-any-region", ...
[[nodiscard]] std::string_view toString(FailureReason reason) noexcept;

/// What is known about a request that failed. Sizes in bytes; free, largest_free and total speak of
/// the wanted domains and memory type at the moment of failure.
struct OutOfMemoryInfo {
  std::uint64_t requested = 0;
  std::uint64_t free = 0;
  std::uint64_t largest_free = 0;
  std::uint64_t total = 0;
  std::optional<DomainId> domain = std::nullopt;  ///< set where the request named just one
  MemoryType memory_type = MemoryType::tensor;
  std::uint32_t reclaims = 0;         ///< chains of callbacks that this request ran itself
  std::uint64_t bytes_reclaimed = 0;  ///< bytes that came back while they ran
  double waited_ms = 0.0;             ///< time asleep, waiting for its turn or for memory
  FailureReason reason = FailureReason::exhausted;
  std::string note = {};  ///< what a callback had to say (garbage collection disabled, ...)
};

/// No memory for a request. Nothing was changed by the call that throws it.
class OutOfMemoryError : public std::bad_alloc {
 public:
  explicit OutOfMemoryError(OutOfMemoryInfo info, std::exception_ptr cause = nullptr);

  [[nodiscard]] char const* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] OutOfMemoryInfo const& info() const noexcept { return info_; }
  [[nodiscard]] std::uint64_t requested() const noexcept { return info_.requested; }
  [[nodiscard]] std::uint64_t free() const noexcept { return info_.free; }
  [[nodiscard]] std::uint64_t largestFree() const noexcept { return info_.largest_free; }
  [[nodiscard]] std::uint64_t total() const noexcept { return info_.total; }
  [[nodiscard]] std::uint32_t reclaims() const noexcept { return info_.reclaims; }
  [[nodiscard]] FailureReason reason() const noexcept { return info_.reason; }
  /// What a callback threw; null if none did.
  [[nodiscard]] std::exception_ptr cause() const noexcept { return cause_; }

 private:
  OutOfMemoryInfo info_;
  std::exception_ptr cause_;
  std::string text_;
};

/// The device refused something it had promised, or an allocator could not be set up on it.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The bookkeeping contradicts itself: a bug in this library, or memory overwritten by someone.
class InvariantViolation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace flex
