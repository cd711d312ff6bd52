// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <fmt/format.h>

#include <flex/bytes.hpp>
#include <flex/error.hpp>

namespace flex {
namespace {

/// One sentence that says what happened and what a person can do about it.
std::string_view adviceFor(FailureReason reason) noexcept {
  switch (reason) {
    case FailureReason::exhausted:
      return "less is free than was asked for: free memory, or use a larger capacity";
    case FailureReason::fragmented:
      return "enough is free but not in one piece: free neighbouring blocks, ask for smaller ones, "
             "or allow the scatter policy";
    case FailureReason::larger_than_any_region:
      return "no region can ever hold this much: use fewer, larger regions or split the request";
    case FailureReason::timed_out:
      return "max_wait ended before the request had its turn: raise max_wait, or find what keeps "
             "the pressure callbacks busy";
    case FailureReason::inside_callback:
      return "allocations inside a pressure callback are served only from what is free already";
    case FailureReason::inside_finalizer:
      return "allocations inside a garbage collection (a finalizer) are served only from what is "
             "free already";
    case FailureReason::must_not_wait:
      return "the request was not allowed to wait or to run callbacks";
    case FailureReason::callback_failed:
      return "a pressure callback failed; its error is the cause of this one";
    case FailureReason::interpreter_finalizing:
      return "the interpreter is shutting down, so garbage is no longer collected";
    case FailureReason::closed:
      return "the allocator was destroyed while the request waited";
  }
  return "";
}

std::string describe(OutOfMemoryInfo const& info) {
  std::string text = fmt::format("out of device memory ({}): tried to allocate {}",
                                 toString(info.reason), formatBytes(info.requested));
  text += fmt::format(" of {} memory", toString(info.memory_type));
  if (info.domain) text += fmt::format(" in domain {}", *info.domain);
  text += fmt::format(
      "; {} of {} free, largest free block {}; {} reclaim{} freed {}, waited {:.1f} ms. {}",
      formatBytes(info.free), formatBytes(info.total), formatBytes(info.largest_free),
      info.reclaims, info.reclaims == 1 ? "" : "s", formatBytes(info.bytes_reclaimed),
      info.waited_ms, adviceFor(info.reason));
  if (!info.note.empty()) text += fmt::format(" ({})", info.note);
  return text;
}

}  // namespace

std::string_view toString(FailureReason reason) noexcept {
  switch (reason) {
    case FailureReason::exhausted:
      return "exhausted";
    case FailureReason::fragmented:
      return "fragmented";
    case FailureReason::larger_than_any_region:
      return "larger-than-any-region";
    case FailureReason::timed_out:
      return "timed-out";
    case FailureReason::inside_callback:
      return "inside-callback";
    case FailureReason::inside_finalizer:
      return "inside-finalizer";
    case FailureReason::must_not_wait:
      return "must-not-wait";
    case FailureReason::callback_failed:
      return "callback-failed";
    case FailureReason::interpreter_finalizing:
      return "interpreter-finalizing";
    case FailureReason::closed:
      return "closed";
  }
  return "unknown";
}

OutOfMemoryError::OutOfMemoryError(OutOfMemoryInfo info, std::exception_ptr cause)
    : info_(std::move(info)), cause_(std::move(cause)), text_(describe(info_)) {}

}  // namespace flex
