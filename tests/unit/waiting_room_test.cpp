// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <flex/waiting_room.hpp>

namespace flex {
namespace {

class NoWork final : public sync::DeferredWork {
  void run() noexcept override {}
};

/// Is served while the budget lasts.
class FakeRequest final : public PressureRequest {
 public:
  FakeRequest(std::uint64_t& budget, std::uint64_t need, Generation arrived)
      : budget_(budget), need_(need) {
    arrived_ = arrived;
  }
  [[nodiscard]] bool fits() const noexcept override { return false; }
  bool tryServe() noexcept override {
    ++searches;
    if (budget_ < need_) return false;
    budget_ -= need_;
    served_ = true;
    return true;
  }
  bool grow(Lock&) override { return false; }
  Generation beginReclaim() override { return 0; }
  bool runNextCallback(Lock&, CallbackLock) override { return false; }
  [[nodiscard]] bool reclaimComplete() const noexcept override { return true; }
  WaitEnd wait(Lock&, sync::Parker& parker, Duration) override {
    return parker.park(sync::Duration(0)) ? WaitEnd::woken : WaitEnd::timed_out;
  }

  int searches = 0;

 private:
  std::uint64_t& budget_;
  std::uint64_t need_;
};

class WaitingRoomTest : public ::testing::Test {
 protected:
  void open(std::uint64_t overtake_limit) {
    room = std::make_unique<WaitingRoom>(StrategyContext{mutex, statistics, *steadyClock()},
                                         overtake_limit);
  }
  std::size_t enter(std::uint64_t need, Generation arrived = 0) {
    requests.push_back(std::make_unique<FakeRequest>(budget, need, arrived));
    places.push_back(std::make_unique<WaitingRoom::Place>(*room, *requests.back()));
    return places.size() - 1;
  }
  bool served(std::size_t i) { return requests[i]->served(); }
  bool woken(std::size_t i) { return places[i]->wait(lock) == WaitEnd::woken; }

  NoWork work;
  sync::Mutex mutex{work};
  Lock lock{mutex};
  PressureStatistics statistics;
  std::uint64_t budget = 0;
  std::unique_ptr<WaitingRoom> room;
  std::vector<std::unique_ptr<FakeRequest>> requests;
  std::vector<std::unique_ptr<WaitingRoom::Place>> places;
};

TEST_F(WaitingRoomTest, ServesInOrderAndWakesWhomItServed) {
  open(0);
  EXPECT_TRUE(room->empty());
  for (int i = 0; i < 3; ++i) enter(1);
  EXPECT_TRUE(places[0]->first());
  EXPECT_FALSE(places[1]->first());
  budget = 2;
  room->serve();
  EXPECT_TRUE(served(0));
  EXPECT_TRUE(served(1));
  EXPECT_FALSE(served(2));
  EXPECT_TRUE(woken(0));
  EXPECT_TRUE(woken(1));
  EXPECT_FALSE(woken(2));
}

TEST_F(WaitingRoomTest, DoesNotSearchForTheServedAgain) {
  open(5);
  enter(1);
  budget = 1;
  room->serve();
  room->serve();
  EXPECT_EQ(requests[0]->searches, 1);
  EXPECT_FALSE(room->someoneWaits());
  EXPECT_FALSE(room->empty()) << "it stays until its thread has run";
}

TEST_F(WaitingRoomTest, NobodyPassesTheFirstWithoutALimitThatAllowsIt) {
  open(0);
  enter(10);
  enter(1);
  budget = 5;
  room->serve();
  EXPECT_FALSE(served(1));
  EXPECT_EQ(requests[1]->searches, 0);
}

TEST_F(WaitingRoomTest, LimitsOvertakingUntilTheFirstLeaves) {
  open(2);
  enter(10);
  for (int i = 0; i < 3; ++i) enter(1);
  budget = 5;
  room->serve();
  EXPECT_TRUE(served(1));
  EXPECT_TRUE(served(2));
  EXPECT_FALSE(served(3));
  EXPECT_EQ(statistics.overtakes, 2U);
  EXPECT_FALSE(room->mayBeOvertaken());
  places[0].reset();
  EXPECT_TRUE(room->mayBeOvertaken());
}

TEST_F(WaitingRoomTest, WakesTheNextWhenTheFirstLeaves) {
  open(0);
  for (int i = 0; i < 3; ++i) enter(1);
  places[1].reset();
  EXPECT_FALSE(woken(2));
  places[0].reset();
  EXPECT_TRUE(woken(2));
  EXPECT_TRUE(places[2]->first());
}

TEST_F(WaitingRoomTest, KnowsWhetherAllWhoCameBeforeAReclaimAreServed) {
  open(0);
  enter(1, 3);
  enter(1, 4);
  EXPECT_TRUE(room->servedAllBefore(3));
  EXPECT_FALSE(room->servedAllBefore(4));
  budget = 1;
  room->serve();
  EXPECT_TRUE(room->servedAllBefore(4));
  EXPECT_FALSE(room->servedAllBefore(5));
}

TEST_F(WaitingRoomTest, WakesAllOnRequest) {
  open(0);
  enter(1);
  enter(1);
  room->wakeAll();
  EXPECT_TRUE(woken(0));
  EXPECT_TRUE(woken(1));
  EXPECT_FALSE(served(0));
}

TEST_F(WaitingRoomTest, KeepsTheForkingThreadsPlaceInAForkedChild) {
  open(1);
  enter(10);
  room->noteOvertake();
  room->resetAfterFork();
  EXPECT_FALSE(room->empty());
  EXPECT_TRUE(room->mayBeOvertaken());
}

}  // namespace
}  // namespace flex
