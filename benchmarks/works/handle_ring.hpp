// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one thread allocates and another frees travels through this.

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include <boost/thread/thread.hpp>

namespace flexbench {

/// A ring between one producer and one consumer. Each waits for the other by spinning, and yields
/// now and then in case both share a core.
///
/// Confined: push() to the producer's thread, pop() to the consumer's.
template <class Handle>
class HandleRing {
 public:
  static constexpr std::size_t kCapacity = 4096;

  void push(Handle&& handle) {
    std::size_t const tail = tail_.load(std::memory_order_relaxed);
    while (tail - seen_head_ == kCapacity) seen_head_ = waitFor(head_, seen_head_);
    (*slots_)[tail % kCapacity] = std::move(handle);
    tail_.store(tail + 1, std::memory_order_release);
  }

  /// The oldest handle, to be consumed in place by `consume(handle)`.
  template <class Consume>
  void pop(Consume const& consume) {
    std::size_t const head = head_.load(std::memory_order_relaxed);
    while (seen_tail_ == head) seen_tail_ = waitFor(tail_, seen_tail_);
    consume((*slots_)[head % kCapacity]);
    head_.store(head + 1, std::memory_order_release);
  }

 private:
  static std::size_t waitFor(std::atomic<std::size_t> const& index, std::size_t seen) {
    for (unsigned spins = 1;; ++spins) {
      std::size_t const now = index.load(std::memory_order_acquire);
      if (now != seen) return now;
      if (spins % 1024 == 0) boost::this_thread::yield();
    }
  }

  std::unique_ptr<std::array<Handle, kCapacity>> slots_ =
      std::make_unique<std::array<Handle, kCapacity>>();
  alignas(64) std::atomic<std::size_t> head_{0};
  std::size_t seen_tail_ = 0;  ///< the consumer's
  alignas(64) std::atomic<std::size_t> tail_{0};
  std::size_t seen_head_ = 0;  ///< the producer's
};

}  // namespace flexbench
