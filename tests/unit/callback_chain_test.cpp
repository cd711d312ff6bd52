// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <flex/detail/callback_chain.hpp>

#include "gate.hpp"
#include "task.hpp"

namespace flex::detail {
namespace {

using test::Gate;
using test::Task;

MemoryPressureCallback nothing() {
  return [](Lock&) {};
}

std::vector<int> prioritiesOf(CallbackChain const& chain) {
  std::vector<int> priorities;
  for (auto const& entry : *chain.snapshot()) priorities.push_back(entry->priority);
  return priorities;
}

TEST(CallbackChain, OrdersByPriorityThenRegistration) {
  CallbackChain chain;
  EXPECT_TRUE(chain.empty());
  auto const a = chain.add(nothing(), 5);
  auto const b = chain.add(nothing(), -1);
  auto const c = chain.add(nothing(), 5);
  EXPECT_EQ(prioritiesOf(chain), (std::vector<int>{-1, 5, 5}));
  auto const snapshot = chain.snapshot();
  EXPECT_EQ((*snapshot)[0], b);
  EXPECT_EQ((*snapshot)[1], a);
  EXPECT_EQ((*snapshot)[2], c);
}

TEST(CallbackChain, SnapshotsStayAsTheyWere) {
  CallbackChain chain;
  auto const a = chain.add(nothing(), 1);
  auto const before = chain.snapshot();
  auto const b = chain.add(nothing(), 2);
  chain.remove(a);
  EXPECT_EQ(before->size(), 1U);
  EXPECT_EQ(prioritiesOf(chain), (std::vector<int>{2}));
}

TEST(CallbackChain, RemovesByPriorityAndAll) {
  CallbackChain chain;
  for (int const priority : {1, 2, 2, 3}) (void)chain.add(nothing(), priority);
  chain.removePriority(2);
  EXPECT_EQ(prioritiesOf(chain), (std::vector<int>{1, 3}));
  chain.removePriority(7);
  chain.removeAll();
  EXPECT_TRUE(chain.empty());
}

TEST(CallbackChain, WhatWasRemovedMayNotRunEvenFromAnOldSnapshot) {
  CallbackChain chain;
  auto const entry = chain.add(nothing(), 0);
  {
    CallbackChain::Run const run(chain, *entry);
    EXPECT_TRUE(run.mayRun());
  }
  chain.remove(entry);
  CallbackChain::Run const run(chain, *entry);
  EXPECT_FALSE(run.mayRun());
}

TEST(CallbackChain, RemovingFromInsideReturnsAtOnce) {
  CallbackChain chain;
  auto const entry = chain.add(nothing(), 0);
  CallbackChain::Run const run(chain, *entry);
  chain.remove(entry);
  EXPECT_TRUE(chain.empty());
}

TEST(CallbackChain, RemovingFromAnotherThreadWaitsForTheRun) {
  CallbackChain chain;
  auto const entry = chain.add(nothing(), 0);
  auto run = std::make_optional<CallbackChain::Run>(chain, *entry);
  std::atomic<bool> ended{false};
  Task<bool> remove([&] {
    chain.remove(entry);
    return ended.load();
  });
  test::waitUntil([&] { return chain.empty(); }, "the entry is off the list");
  EXPECT_FALSE(remove.done());
  ended = true;
  run.reset();
  EXPECT_TRUE(remove.get());
}

TEST(CallbackChain, RemovingAgainWaitsForTheRunAsWell) {
  CallbackChain chain;
  auto const entry = chain.add(nothing(), 0);
  auto run = std::make_optional<CallbackChain::Run>(chain, *entry);
  chain.remove(entry);  // from inside: at once
  ASSERT_TRUE(chain.empty());
  std::atomic<bool> ended{false};
  Gate asked;
  Task<bool> remove([&] {
    asked.open();
    chain.remove(entry);
    return ended.load();
  });
  Task<bool> remove_all([&] {
    chain.removeAll();
    return ended.load();
  });
  asked.pass();
  for (int i = 0; i < 2000; ++i) boost::this_thread::yield();
  EXPECT_FALSE(remove.done());
  EXPECT_FALSE(remove_all.done()) << "what the callback uses may end with its allocator";
  ended = true;
  run.reset();
  EXPECT_TRUE(remove.get());
  EXPECT_TRUE(remove_all.get());
}

TEST(CallbackChain, WaitingForARunIsNoInterruptionPoint) {
  CallbackChain chain;
  auto const entry = chain.add(nothing(), 0);
  auto run = std::make_optional<CallbackChain::Run>(chain, *entry);
  Task<bool> remove([&] {
    chain.remove(entry);
    return true;
  });
  test::waitUntil([&] { return chain.empty(); }, "the entry is off the list");
  remove.interrupt();
  for (int i = 0; i < 100; ++i) boost::this_thread::yield();
  EXPECT_FALSE(remove.done());
  run.reset();
  EXPECT_TRUE(remove.get());
}

TEST(CallbackChain, DestroysWhatACallbackHeldOutsideItsLock) {
  CallbackChain chain;
  // Registers another callback when it dies: with the chain's lock held this would deadlock.
  {
    auto held = std::shared_ptr<void>(&chain, [&chain](void*) { (void)chain.add(nothing(), 3); });
    (void)chain.add([held](Lock&) {}, 0);
  }
  chain.removePriority(0);
  EXPECT_EQ(prioritiesOf(chain), (std::vector<int>{3}));
}

}  // namespace
}  // namespace flex::detail
