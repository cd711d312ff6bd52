// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that is still held, though nobody needs it: what pressure callbacks free.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <boost/thread/mutex.hpp>

#include <flex/composite_address.hpp>

namespace flex::test {

/// Thread-safe: any member may be called from any thread at any time.
class Garbage {
 public:
  void add(CompositeAddress&& address) {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    addresses_.push_back(std::move(address));
  }

  /// Frees everything. When it returns, so has every clear() that found something before it: frees
  /// never block, so they may go on under the list's mutex.
  void clear() {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    addresses_.clear();
  }

  /// Frees the `count` oldest.
  void clearOldest(std::size_t count) {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    auto const end =
        addresses_.begin() + static_cast<std::ptrdiff_t>(std::min(count, addresses_.size()));
    addresses_.erase(addresses_.begin(), end);
  }

  [[nodiscard]] std::size_t size() const {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    return addresses_.size();
  }

 private:
  mutable boost::mutex mutex_;
  std::vector<CompositeAddress> addresses_;
};

}  // namespace flex::test
