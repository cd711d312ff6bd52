// SPDX-License-Identifier: Apache-2.0
#include "explorer.hpp"

#include <algorithm>

namespace flex::interleave {

// ---------------------------------------------------------------------------- depth first

bool DepthFirst::nextRun() {
  depth_ = 0;
  cost_ = 0;
  cut_ = false;
  if (std::exchange(first_, false)) return true;
  while (!path_.empty()) {
    Node& node = path_.back();
    while (++node.chosen < node.options.size()) {
      if (node.cost + node.options[node.chosen].cost <= bound_) return true;
    }
    path_.pop_back();
  }
  return false;
}

std::size_t DepthFirst::choose(Options const& options, std::uint64_t state) {
  if (depth_ < path_.size()) {
    Node const& node = path_[depth_++];
    cost_ = node.cost + node.options[node.chosen].cost;
    if (!(node.options == options)) return options.size();  // a run that cannot be repeated
    return node.chosen;
  }
  if (cut_) return 0;
  auto const [seen, is_new] = seen_.try_emplace(state, cost_);
  if (!is_new && seen->second <= cost_) {
    cut_ = true;
    return 0;
  }
  seen->second = cost_;
  path_.push_back({options, 0, cost_});
  ++depth_;
  return 0;
}

// ---------------------------------------------------------------------------- at random

bool RandomWalk::nextRun() {
  if (left_ == 0) return false;
  --left_;
  random_.seed(
      static_cast<std::minstd_rand::result_type>(seed_ * 2654435761U + left_ * 40503U + 1));
  random_.discard(3);
  switch_one_in_ = 2U + static_cast<unsigned>(left_ % 12);
  return true;
}

std::size_t RandomWalk::choose(Options const& options, std::uint64_t /*state*/) {
  if (random_() / 7U % switch_one_in_ != 0) return 0;
  return random_() / 7U % options.size();
}

bool Priorities::nextRun() {
  if (left_ == 0) return false;
  --left_;
  longest_ = std::max(longest_, choices_);
  choices_ = 0;
  random_.seed(seed_ * 0x9E3779B97F4A7C15ULL + left_);
  for (std::size_t i = 0; i < kMaxThreads; ++i) priority_[i] = static_cast<std::int64_t>(i) + 1;
  std::shuffle(priority_.begin(), priority_.end(), random_);
  drop_at_.clear();
  for (unsigned i = 0; i < drops_; ++i) drop_at_.push_back(random_() % longest_);
  lowest_ = 0;
  return true;
}

std::size_t Priorities::choose(Options const& options, std::uint64_t /*state*/) {
  std::uint64_t const choice = choices_++;
  if (std::find(drop_at_.begin(), drop_at_.end(), choice) != drop_at_.end()) {
    priority_[options.front().thread] = --lowest_;
  }
  std::size_t best = 0;
  if (options.back().kind == Option::Kind::arrives) return random_() % 4 == 0 ? 1 : 0;
  for (std::size_t i = 0; i < options.size(); ++i) {
    bool const early = options[i].kind != Option::Kind::run && options[i].cost != 0;
    if (early && random_() % 16 != 0) continue;
    if (priority_[options[i].thread] > priority_[options[best].thread]) best = i;
  }
  return best;
}

// ---------------------------------------------------------------------------- again

std::size_t Replay::choose(Options const& options, std::uint64_t /*state*/) {
  std::uint64_t const choice = choice_++;
  if (next_ == deviations_.size() || deviations_[next_].choice != choice) return 0;
  Option const& wanted = deviations_[next_++].option;
  auto const found = std::find_if(options.begin(), options.end(), [&](Option const& option) {
    return option.thread == wanted.thread && option.kind == wanted.kind;
  });
  return static_cast<std::size_t>(found - options.begin());
}

}  // namespace flex::interleave
