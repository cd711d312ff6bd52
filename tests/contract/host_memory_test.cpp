// SPDX-License-Identifier: Apache-2.0
// The host's memory runs out at the n-th request for it, for every n: the call throws
// std::bad_alloc and has changed nothing, or it does its work. // case 95

#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "pressure_contract.hpp"

namespace {

/// Requests for host memory on this thread until one fails; 0: none does.
thread_local int until_failure = 0;

}  // namespace

// Not inline: the compiler would miss the partner of malloc() and free() in each.
[[gnu::noinline]] void* operator new(std::size_t nbytes) {
  if (until_failure > 0 && --until_failure == 0) throw std::bad_alloc();
  if (void* const memory = std::malloc(nbytes == 0 ? 1 : nbytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*nbytes*/) noexcept {
  std::free(memory);
}

namespace flex::test {
namespace {

/// Runs `action` with the n-th request for host memory failing; false if there was no n-th.
template <class Action>
bool failsAt(int n, Action action) {
  until_failure = n;
  try {
    action();
  } catch (std::bad_alloc const& error) {
    EXPECT_EQ(until_failure, 0) << "not host memory failed: " << error.what();
  }
  return std::exchange(until_failure, 0) == 0;
}

/// Everything of which a failed call must not change anything.
auto stateOf(Statistics const& now) {
  return std::tuple(now.allocations.current, now.allocated_bytes.current,
                    now.requested_bytes.current, now.free, now.total, now.regions.current);
}

/// `action` allocates something and lets go of it again.
template <class Box, class Action>
void expectStrongGuarantee(Box& box, Action action) {
  Statistics const before = box->statistics();
  int n = 0;
  do {
    ++n;
    SCOPED_TRACE(n);
    ASSERT_LT(n, 1000) << "it never comes to an end";
    if (!failsAt(n, action)) break;
    EXPECT_EQ(stateOf(box->statistics()), stateOf(before));
    box->checkInvariants();
  } while (true);
  EXPECT_GT(n, 1) << "host memory was never needed";
  EXPECT_NO_THROW(action());
}

template <class Strategy>
DeviceTopology twoDomains() {
  DeviceTopology topology;
  topology.domain_capacity = {kCapacity, kCapacity};
  return topology;
}

TYPED_TEST(PressureContract, SeveralChunksWithoutHostMemoryChangeNothing) {
  Sandbox<TypeParam> box(oneRegion(), twoDomains<TypeParam>());
  expectStrongGuarantee(
      box, [&] { (void)box->allocate(4 * kBlock, {.policy = PlacementPolicy::interleave}); });
}

TYPED_TEST(PressureContract, RegisteringWithoutHostMemoryChangesNothing) {
  Sandbox<TypeParam> box;
  RecordingCallback const callback;
  expectStrongGuarantee(box, [&] { (void)box->registerMemoryPressureCallback(callback); });
  auto const held = box.hold(kBlocks);
  EXPECT_THROW((void)box->allocate(kBlock, {}, neverSleep()), OutOfMemoryError);
  EXPECT_EQ(callback.runs(), 0U) << "a registration that failed was left behind";
}

TYPED_TEST(PressureContract, PressureWithoutHostMemoryChangesNothing) {
  Sandbox<TypeParam> box;
  auto held = box.hold(kBlocks);
  std::uint64_t runs = 0;
  // It gives one block back, which the request then has and drops, and it is held again.
  auto const handle = box->registerMemoryPressureCallback([&](Lock& lock) {
    withoutLock(lock, [&] {
      ++runs;
      held.pop_back();
    });
  });
  int n = 0;
  bool failed = true;
  while (failed) {
    ASSERT_LT(++n, 1000);
    SCOPED_TRACE(n);
    failed = failsAt(n, [&] { (void)box->allocate(kBlock, {}, neverSleep()); });
    while (held.size() < kBlocks) held.push_back(box->allocate(kBlock));
    box->checkInvariants();
  }
  EXPECT_GE(runs, 1U);
}

TYPED_TEST(PressureContract, FailingWithoutHostMemoryChangesNothing) {
  Sandbox<TypeParam> box;
  auto const held = box.hold(kBlocks);
  int n = 0;
  bool failed = true;
  while (failed) {
    ASSERT_LT(++n, 1000);
    failed = failsAt(n, [&] {
      try {
        (void)box->allocate(kBlock, {}, neverSleep());
        ADD_FAILURE() << "there was no memory";
      } catch (OutOfMemoryError const&) {
      }
    });
    box->checkInvariants();
  }
  EXPECT_GT(n, 1) << "host memory was never needed";
}

TYPED_TEST(PressureContract, ConstructionWithoutHostMemoryGivesEveryRegionBack) {
  auto const device = std::make_shared<ScriptedDevice>(kCapacity);
  AllocatorOptions options;
  options.regions = 4;
  int n = 0;
  bool failed = true;
  while (failed) {
    ASSERT_LT(++n, 1000);
    failed = failsAt(n, [&] { FlexAllocator<TypeParam> const allocator(device, options); });
    EXPECT_EQ(device->regionsHeld(), 0U);
  }
  EXPECT_GT(n, 4);
}

}  // namespace
}  // namespace flex::test
