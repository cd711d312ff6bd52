// SPDX-License-Identifier: Apache-2.0
#pragma once
// One call on a thread of its own, and what became of it.

#include <atomic>
#include <exception>
#include <optional>
#include <utility>

#include <boost/chrono/duration.hpp>
#include <boost/thread/scoped_thread.hpp>
#include <boost/thread/thread.hpp>

#include <flex/composite_address.hpp>
#include <flex/error.hpp>

#include "watchdog.hpp"

namespace flex::test {

/// Interrupted and joined when it leaves its scope.
using ScopedThread = boost::scoped_thread<boost::interrupt_and_join_if_joinable>;

/// Confined: use from the thread that owns it.
template <class Result>
class Task {
 public:
  template <class Work>
  explicit Task(Work work)
      : thread_(boost::thread([this, work = std::move(work)]() mutable { run(work); })) {}
  Task(Task const&) = delete;
  Task& operator=(Task const&) = delete;
  ~Task() = default;

  [[nodiscard]] bool done() const { return done_.load(); }
  void interrupt() { thread_.interrupt(); }
  [[nodiscard]] boost::thread::id id() const { return thread_.get_id(); }

  void join() {
    if (!thread_.joinable()) return;
    if (!thread_.try_join_for(boost::chrono::seconds(kPatience.count()))) giveUpOn("a task ends");
  }

  /// What the work returned; throws what it threw, boost::thread_interrupted included.
  Result get() {
    join();
    if (interrupted_) throw boost::thread_interrupted();
    if (error_) std::rethrow_exception(error_);
    return std::move(*result_);
  }

  [[nodiscard]] bool wasInterrupted() {
    join();
    return interrupted_;
  }

 private:
  template <class Work>
  void run(Work& work) {
    try {
      result_.emplace(work());
    } catch (boost::thread_interrupted const&) {
      interrupted_ = true;
    } catch (...) {
      error_ = std::current_exception();
    }
    done_ = true;
  }

  std::optional<Result> result_;
  std::exception_ptr error_;
  bool interrupted_ = false;
  std::atomic<bool> done_{false};
  ScopedThread thread_;  // last: it uses all of the above
};

using Allocation = Task<CompositeAddress>;

/// The reason why a call failed; none if it did not, or failed otherwise.
template <class Call>
[[nodiscard]] std::optional<OutOfMemoryInfo> outOfMemory(Call call) {
  try {
    (void)call();
  } catch (OutOfMemoryError const& error) {
    return error.info();
  }
  return std::nullopt;
}

[[nodiscard]] inline std::optional<FailureReason> reasonOf(Allocation& allocation) {
  auto const info = outOfMemory([&] { return allocation.get(); });
  return info ? std::optional(info->reason) : std::nullopt;
}

}  // namespace flex::test
