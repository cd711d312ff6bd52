// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which schedules are tried, and in which order.

#include <random>
#include <unordered_map>
#include <utility>

#include "scheduler.hpp"

namespace flex::interleave {

/// Decides for a row of runs.
class Search : public Chooser {
 public:
  /// Prepares the next run. False: there is nothing left to try.
  [[nodiscard]] virtual bool nextRun() = 0;
};

/// Tries every schedule with at most `bound` deviations: preemptions of a thread that could go on,
/// and sleeps that end while they need not. A state that was reached before, by another order of
/// unrelated steps and with no more deviations, is not tried again.
class DepthFirst final : public Search {
 public:
  explicit DepthFirst(unsigned bound) : bound_(bound) {}

  [[nodiscard]] bool nextRun() override;
  [[nodiscard]] std::size_t choose(Options const& options, std::uint64_t state) override;
  /// States at which a choice was made.
  [[nodiscard]] std::size_t states() const noexcept { return seen_.size(); }

 private:
  struct Node {
    Options options;
    std::size_t chosen = 0;
    unsigned cost = 0;  ///< of the way to this node
  };

  unsigned const bound_;
  std::vector<Node> path_;
  std::size_t depth_ = 0;
  unsigned cost_ = 0;
  bool cut_ = false;
  bool first_ = true;
  std::unordered_map<std::uint64_t, unsigned> seen_;  ///< the least cost of reaching a state
};

/// Each choice at random, most often the default.
class RandomWalk final : public Search {
 public:
  RandomWalk(std::uint64_t seed, std::uint64_t runs) : seed_(seed), left_(runs) {}
  [[nodiscard]] bool nextRun() override;
  [[nodiscard]] std::size_t choose(Options const& options, std::uint64_t state) override;

 private:
  std::uint64_t seed_;
  std::uint64_t left_;
  std::minstd_rand random_;
  unsigned switch_one_in_ = 2;
};

/// Threads have priorities, drawn anew for each run; at a few random moments the running one drops
/// to the end (Burckhardt et al., 2010).
class Priorities final : public Search {
 public:
  Priorities(std::uint64_t seed, std::uint64_t runs, unsigned drops)
      : seed_(seed), left_(runs), drops_(drops) {}
  [[nodiscard]] bool nextRun() override;
  [[nodiscard]] std::size_t choose(Options const& options, std::uint64_t state) override;

 private:
  std::uint64_t seed_;
  std::uint64_t left_;
  unsigned const drops_;
  std::uint64_t choices_ = 0;
  std::uint64_t longest_ = 60;
  std::mt19937_64 random_;
  std::array<std::int64_t, kMaxThreads> priority_{};
  std::vector<std::uint64_t> drop_at_;
  std::int64_t lowest_ = 0;
};

/// One given schedule.
class Replay final : public Search {
 public:
  explicit Replay(std::string const& schedule) : deviations_(parseSchedule(schedule)) {}
  [[nodiscard]] bool nextRun() override { return std::exchange(first_, false); }
  [[nodiscard]] std::size_t choose(Options const& options, std::uint64_t state) override;
  /// Whether every deviation was used.
  [[nodiscard]] bool fits() const noexcept { return next_ == deviations_.size(); }

 private:
  std::vector<Deviation> deviations_;
  std::size_t next_ = 0;
  std::uint64_t choice_ = 0;
  bool first_ = true;
};

}  // namespace flex::interleave
