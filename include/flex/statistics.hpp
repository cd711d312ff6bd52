// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an allocator counts. Plain data, copied out in one consistent piece.

#include <array>
#include <cstdint>

#include <flex/error.hpp>
#include <flex/sync/primitives.hpp>

namespace flex {

/// One quantity over time, as frameworks count it.
struct Stat {
  std::int64_t current = 0;
  std::int64_t peak = 0;       ///< highest current since construction or resetPeak()
  std::int64_t allocated = 0;  ///< sum of all increases since construction or resetAccumulated()
  std::int64_t freed = 0;      ///< sum of all decreases, likewise
};

/// What pressure did. All but the times count since construction or resetAccumulated().
struct PressureStatistics {
  std::uint64_t events = 0;           ///< requests that met exhaustion
  std::uint64_t reclaims = 0;         ///< runs of the callback chain
  std::uint64_t coalesced = 0;        ///< events that ended without a reclaim of their own
  std::uint64_t handoffs = 0;         ///< requests served by another thread while they waited
  std::uint64_t overtakes = 0;        ///< requests served past a waiting one that could not use it
  std::uint64_t waits = 0;            ///< requests that slept at least once
  std::uint64_t timeouts = 0;         ///< requests whose max_wait ended
  std::uint64_t callbacks = 0;        ///< callbacks run
  std::uint64_t callback_errors = 0;  ///< callbacks that threw
  std::uint64_t callbacks_skipped = 0;  ///< callbacks that reported they did nothing
  std::uint64_t bytes_reclaimed = 0;    ///< bytes that came back while callbacks ran
  std::uint64_t growths = 0;            ///< regions taken from the device after construction
  std::uint64_t deferred_frees = 0;     ///< blocks freed by threads that could not get the lock
  sync::Duration wait_time{0};          ///< time asleep, all requests together
  sync::Duration callback_time{0};      ///< time inside callbacks, all threads together
  /// Failed requests, indexed by FailureReason.
  std::array<std::uint64_t, kFailureReasons> failures{};

  [[nodiscard]] std::uint64_t failuresFor(FailureReason reason) const noexcept {
    return failures[static_cast<std::size_t>(reason)];
  }
  [[nodiscard]] std::uint64_t outOfMemory() const noexcept {
    std::uint64_t sum = 0;
    for (std::uint64_t const count : failures) sum += count;
    return sum;
  }
};

/// One consistent picture of an allocator. Bytes unless said otherwise.
struct Statistics {
  Stat allocations;      ///< CompositeAddresses alive (a count)
  Stat allocated_bytes;  ///< their blocks, rounded up to the granule
  Stat requested_bytes;  ///< what was asked for, before rounding
  Stat regions;          ///< regions held (a count)
  Stat reserved_bytes;   ///< regions held
  std::uint64_t free = 0;
  std::uint64_t largest_free = 0;
  std::uint64_t total = 0;  ///< equals reserved_bytes.current
  /// What the allocator can hold at most: the upfront layout, or all domains if on demand.
  std::uint64_t capacity = 0;
  std::uint64_t blocks = 0;          ///< used and free blocks (a count)
  std::uint64_t metadata_bytes = 0;  ///< host memory that describes the blocks
  std::uint64_t misuses = 0;         ///< foreign or repeated frees that were refused (a count)
  PressureStatistics pressure;
};

}  // namespace flex
