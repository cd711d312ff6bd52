// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests that wait, in the order in which they came.

#include <cstdint>

#include <boost/intrusive/list.hpp>

#include <flex/pressure_request.hpp>
#include <flex/sync/parker.hpp>
#include <flex/sync/thread_annotations.hpp>

namespace flex {

/// First come, first served. Memory is handed to those who wait by whoever frees it, never raced
/// for; each sleeps at a parker of its own, so handing over wakes exactly the one that was served.
///
/// Requests that come later may be served past the first one only with what that one cannot use,
/// and only `overtake_limit` times before it leaves: an overtaker may take a piece that would have
/// grown into the block the first one needs.
///
/// Thread-safety: all members require the allocator's mutex.
class WaitingRoom {
 public:
  /// One request's place. Taken by the requesting thread, on its stack; leaving is RAII, so an
  /// interrupted or timed-out request is left nowhere.
  class Place : public boost::intrusive::list_base_hook<> {
   public:
    Place(WaitingRoom& room, PressureRequest& request) : room_(room), request_(request) {
      room_.places_.push_back(*this);
    }
    Place(Place const&) = delete;
    Place& operator=(Place const&) = delete;
    ~Place() { room_.leave(*this); }

    [[nodiscard]] bool first() const noexcept { return &room_.places_.front() == this; }
    [[nodiscard]] WaitEnd wait(Lock& lock, Duration at_most = kLongestWait) {
      return request_.wait(lock, parker_, at_most);
    }

   private:
    friend class WaitingRoom;

    WaitingRoom& room_;
    PressureRequest& request_;
    sync::Parker parker_;
  };

  WaitingRoom(StrategyContext const& context, std::uint64_t overtake_limit) noexcept
      : statistics_(context.statistics), overtake_limit_(overtake_limit) {}

  [[nodiscard]] bool empty() const noexcept { return places_.empty(); }

  /// Whether someone here still has no memory. (Who was served stays until its thread has run.)
  [[nodiscard]] bool someoneWaits() const noexcept;

  /// Whether one more request may be served past the first.
  [[nodiscard]] bool mayBeOvertaken() const noexcept { return overtakes_ < overtake_limit_; }
  /// A request was served past the first.
  void noteOvertake() noexcept {
    ++overtakes_;
    ++servings_;
    ++statistics_.overtakes;
  }

  /// Changes whenever somebody is served who waited here, or past one who waits.
  [[nodiscard]] std::uint64_t servings() const noexcept { return servings_; }

  /// Searches the pool for everyone here, in order, and wakes those it could serve.
  void serve() noexcept;

  /// Whether everyone who arrived before reclaim `generation` began has memory.
  [[nodiscard]] bool servedAllBefore(Generation generation) const noexcept;

  void wakeAll() noexcept;
  void wakeAllBut(PressureRequest const& awake) noexcept;

  /// In a forked child: the sleepers' threads do not exist here, so neither do their places.
  void resetAfterFork() noexcept;

 private:
  void leave(Place& place) noexcept;

  using Places = boost::intrusive::list<Place, boost::intrusive::constant_time_size<false>>;

  Places places_;
  PressureStatistics& statistics_;
  std::uint64_t overtake_limit_;
  std::uint64_t overtakes_ = 0;  ///< past the request that is first now
  std::uint64_t servings_ = 0;
};

}  // namespace flex
