// SPDX-License-Identifier: Apache-2.0
// What a callback may do: free, throw, unlock, look, drop.

#include <stdexcept>

#include "pressure_contract.hpp"

namespace flex::test {
namespace {

AllocatorOptions propagating() {
  AllocatorOptions options = oneRegion();
  options.callback_errors = CallbackErrors::propagate;
  return options;
}

// cases 17, 23
TYPED_TEST(PressureContract, FindsWhatACallbackFreesWithoutLettingGo) {
  Sandbox<TypeParam> box;
  box.litter();
  RecordingCallback const callback([&](Lock&) { box.garbage.clear(); });
  auto const handle = box->registerMemoryPressureCallback(callback);
  EXPECT_TRUE(box->allocate(kCapacity, {}, neverSleep()));
  EXPECT_EQ(callback.runs(), 1U);
  PressureStatistics const pressure = box.pressure();
  EXPECT_EQ(pressure.bytes_reclaimed, kCapacity);
  EXPECT_EQ(pressure.deferred_frees, callback.calls().front().lock_owned ? kBlocks : 0U);
}

TYPED_TEST(PressureContract, TakesTheLockBackFromACallbackThatReturnsWithoutIt) {
  Sandbox<TypeParam> box;
  box.litter();
  RecordingCallback const callback([&](Lock& lock) {
    letGo(lock);
    box.garbage.clear();
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  EXPECT_TRUE(box->allocate(kCapacity, {}, neverSleep()));
  EXPECT_EQ(callback.runs(), 1U);
}

// case 92
TYPED_TEST(PressureContract, MakesWhatACallbackThrowsTheCause) {
  for (bool const let_go : {false, true}) {
    SCOPED_TRACE(let_go ? "thrown without the lock" : "thrown with the lock as handed over");
    Sandbox<TypeParam> box;
    box.litter();
    RecordingCallback const callback([&](Lock& lock) {
      if (let_go) letGo(lock);
      throw std::domain_error("broken callback");
    });
    auto const handle = box->registerMemoryPressureCallback(callback);
    try {
      (void)box->allocate(kBlock, {}, neverSleep());
      FAIL() << "served from nowhere";
    } catch (OutOfMemoryError const& error) {
      EXPECT_EQ(error.reason(), FailureReason::callback_failed);
      ASSERT_NE(error.cause(), nullptr);
      EXPECT_THROW(std::rethrow_exception(error.cause()), std::domain_error);
    }
    EXPECT_EQ(callback.runs(), 1U);
    EXPECT_EQ(box.pressure().callback_errors, 1U);
    box.garbage.clearOldest(1);
    EXPECT_TRUE(box->allocate(kBlock)) << "the allocator stays usable";
  }
}

TYPED_TEST(PressureContract, GoesOnWithTheChainAfterACallbackThrew) {
  Sandbox<TypeParam> box;
  box.litter();
  RecordingCallback const broken([](Lock&) { throw 42; });
  RecordingCallback const callback = box.collector();
  auto const handle1 = box->registerMemoryPressureCallback(broken, 1);
  auto const handle2 = box->registerMemoryPressureCallback(callback, 2);
  EXPECT_TRUE(box->allocate(kBlock, {}, neverSleep()));
  EXPECT_EQ(broken.runs(), 1U);
  EXPECT_EQ(callback.runs(), 1U);
}

TYPED_TEST(PressureContract, PropagatesWhatACallbackThrowsWhereAsked) {
  for (bool const let_go : {false, true}) {
    Sandbox<TypeParam> box(propagating());
    box.litter();
    RecordingCallback const broken([&](Lock& lock) {
      if (let_go) letGo(lock);
      throw std::domain_error("broken callback");
    });
    RecordingCallback const callback = box.collector();
    auto const handle1 = box->registerMemoryPressureCallback(broken, 1);
    auto const handle2 = box->registerMemoryPressureCallback(callback, 2);
    EXPECT_THROW((void)box->allocate(kBlock, {}, neverSleep()), std::domain_error);
    EXPECT_EQ(broken.runs(), 1U);
    EXPECT_EQ(callback.runs(), 0U) << "the chain stops";
    box->registerMemoryPressureCallback(nullptr, 1);
    EXPECT_TRUE(box->allocate(kBlock, {}, neverSleep()));
    EXPECT_EQ(callback.runs(), 1U);
  }
}

// An exception must not keep anyone else out. // case 94
TYPED_TEST(PressureContract, ServesOthersAfterACallbackThrew) {
  Sandbox<TypeParam> box(propagating());
  box.litter();
  Gate gate;
  OpenAtEnd const open(gate);
  bool first = true;
  RecordingCallback const callback([&](Lock& lock) {
    letGo(lock);
    if (std::exchange(first, false)) {
      gate.pass();
      throw std::domain_error("broken callback");
    }
    box.garbage.clear();
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto failing = box.request(kBlock);
  gate.waitForArrivals();
  auto waiting = box.sleepingRequest(kBlock, 1);
  gate.open();
  EXPECT_THROW((void)failing->get(), std::domain_error);
  EXPECT_TRUE(waiting->get());
  EXPECT_EQ(callback.runs(), 2U);
}

TYPED_TEST(PressureContract, LetsACallbackLookAtTheAllocator) {
  for (bool const let_go : {false, true}) {
    Sandbox<TypeParam> box(onDemand(2, kCapacity / 2));
    box.litter();
    RecordingCallback const callback([&](Lock& lock) {
      if (let_go) letGo(lock);
      bool const owned = lock.owned();
      box.garbage.clear();
      EXPECT_GE(box->statistics().free, kCapacity - kBlock) << "the request may have its block";
      EXPECT_NO_THROW(box->checkInvariants());
      box->resetPeakStatistics();
      EXPECT_GE(box->trim(), kCapacity / 2);
      EXPECT_LE(box->statistics().regions.current, 1);
      EXPECT_EQ(lock.owned(), owned);
    });
    auto const handle = box->registerMemoryPressureCallback(callback);
    EXPECT_THROW((void)box->allocate(kBlock, {}, mustNotWait()), OutOfMemoryError);
    EXPECT_EQ(callback.runs(), 0U);
    (void)outOfMemory([&] { return box->allocate(kBlock, {}, neverSleep()); });
    EXPECT_EQ(callback.runs(), 1U);
  }
}

// case 27
TYPED_TEST(PressureContract, LetsACallbackFreeWhatBelongsToAnotherAllocator) {
  Sandbox<TypeParam> other;
  other.litter();
  Sandbox<TypeParam> box;
  box.litter();
  RecordingCallback const callback([&](Lock&) {
    other.garbage.clear();
    box.garbage.clear();
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  EXPECT_TRUE(box->allocate(kCapacity, {}, neverSleep()));
  EXPECT_EQ(callback.runs(), 1U);
  EXPECT_EQ(other->statistics().free, kCapacity);
}

TYPED_TEST(PressureContract, LetsACallbackDropTheLastAddressOfAClosedAllocator) {
  auto other = std::make_unique<Sandbox<TypeParam>>();
  CompositeAddress last = (*other)->allocate(kBlock);
  auto const device = other->device;
  other->allocator.reset();
  EXPECT_EQ(device->regionsHeld(), 1U) << "a block is still used";
  Sandbox<TypeParam> box;
  box.litter();
  RecordingCallback const callback([&](Lock& lock) {
    withoutLock(lock, [&] {
      last.reset();
      box.garbage.clear();
    });
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  EXPECT_TRUE(box->allocate(kCapacity, {}, neverSleep()));
  EXPECT_EQ(callback.runs(), 1U);
  EXPECT_EQ(device->regionsHeld(), 0U);
}

TYPED_TEST(PressureContract, ReportsWhatACallbackHadToSay) {
  Sandbox<TypeParam> box;
  auto const held = box.hold(kBlocks);
  RecordingCallback const callback([](Lock&, PressureEvent const&) {
    return ReclaimResult{.outcome = ReclaimResult::Outcome::not_possible,
                         .reason = FailureReason::inside_finalizer,
                         .note = "collection is disabled"};
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  try {
    (void)box->allocate(kBlock, {}, neverSleep());
    FAIL() << "served from nowhere";
  } catch (OutOfMemoryError const& error) {
    EXPECT_EQ(error.reason(), FailureReason::inside_finalizer);
    EXPECT_EQ(error.info().note, "collection is disabled");
    EXPECT_NE(std::string_view(error.what()).find("collection is disabled"),
              std::string_view::npos);
  }
  EXPECT_EQ(callback.runs(), 1U);
  EXPECT_EQ(box.pressure().callbacks_skipped, 1U);
}

}  // namespace
}  // namespace flex::test
