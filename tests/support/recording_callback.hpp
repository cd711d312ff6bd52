// SPDX-License-Identifier: Apache-2.0
#pragma once
// A memory-pressure callback that remembers how it was called.

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/thread/mutex.hpp>

#include <flex/pressure.hpp>

namespace flex::test {

/// Runs `action`, which is nothing or any callable of the two forms that callbacks have. Copies
/// share one record.
///
/// Thread-safe: any member may be called from any thread at any time.
class RecordingCallback {
 public:
  struct Call {
    PressureEvent event;
    sync::ThreadId thread;
    bool lock_owned = false;
  };

  RecordingCallback() = default;
  template <class Action>
  requires(!std::same_as<std::remove_cvref_t<Action>,
                         RecordingCallback>) explicit RecordingCallback(Action action)
      : action_(std::move(action)) {}

  ReclaimResult operator()(Lock& lock, PressureEvent const& event) const {
    {
      boost::unique_lock<boost::mutex> const guard(record_->mutex);
      record_->calls.push_back({event, sync::thisThread(), lock.owned()});
    }
    return action_ ? action_(lock, event) : ReclaimResult{};
  }

  [[nodiscard]] std::vector<Call> calls() const {
    boost::unique_lock<boost::mutex> const guard(record_->mutex);
    return record_->calls;
  }
  [[nodiscard]] std::size_t runs() const { return calls().size(); }

 private:
  struct Record {
    boost::mutex mutex;
    std::vector<Call> calls;
  };

  MemoryPressureCallback action_;
  std::shared_ptr<Record> record_ = std::make_shared<Record>();
};

/// The body of a callback that does its work with the mutex free, under every strategy.
// The analysis does not know that the lock is owned here, or that it does not matter.
template <class Work>
void withoutLock(Lock& lock, Work work) FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
  lock.unlock();
  work();
  lock.lock();
}

inline void letGo(Lock& lock) FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS { lock.unlock(); }

}  // namespace flex::test
