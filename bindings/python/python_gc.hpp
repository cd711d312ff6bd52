// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory-pressure callback that runs Python's cyclic garbage collector.

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <flex/pressure.hpp>
#include <spyre/any_allocator.hpp>

namespace spyre_alloc {

/// How garbage is collected under pressure. Times in seconds.
struct GcOptions {
  bool young_first = false;      ///< collect generations 0 and 1 before all; each may suffice
  bool respect_disable = false;  ///< do nothing while gc.disable() is in force
  double patience = 1.0;         ///< how long to wait for a collection that another thread runs
  double min_interval = 0.0;     ///< from the end of a fruitless collection to the next
  double budget = 0.5;           ///< share of time that fruitless collections may take
  double burst = 1.0;            ///< seconds of fruitless collecting allowed at once
};

struct GcStatistics {
  std::uint64_t collections = 0;          ///< collections that ran
  std::uint64_t collections_skipped = 0;  ///< asked for, but did not run
  std::uint64_t fruitless = 0;            ///< ran and gave no device memory back
  std::chrono::nanoseconds time{0};       ///< inside gc.collect
};

/// A buffer that only a reference cycle keeps alive is freed by nothing but the cyclic collector.
/// So under pressure it runs: on the requesting thread, whether Python knows it or not, attached
/// only for as long as it takes, and with the allocator's mutex free.
///
/// A collection that gives nothing back costs time from a bucket that refills at `budget` seconds a
/// second, up to `burst`. When it is empty, collections are skipped: memory that the collector
/// cannot free does not turn every failing request into a collection.
class PythonGc {
 public:
  /// Registers with `allocator`, behind callbacks of priority below kPriority. The registration
  /// ends with this object; it blocks then, detached, while a collection runs on another thread.
  PythonGc(spyre::AnyAllocator& allocator, GcOptions const& options);

  /// Requires: attached.
  [[nodiscard]] GcStatistics statistics() const noexcept;

  static constexpr int kPriority = 1000;

 private:
  struct State;

  std::shared_ptr<State> state_;
  std::vector<flex::CallbackHandle> handles_;
};

}  // namespace spyre_alloc
