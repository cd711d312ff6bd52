// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a scenario is made of, and what is checked in every one.

#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include <flex/flex_allocator.hpp>
#include <flex/offset_device.hpp>

#include "scheduler.hpp"

namespace flex::interleave {

inline constexpr std::uint64_t kBlock = kGranule;  ///< the unit of all scenarios

/// Hands out address ranges and knows what has not come back.
class CountingDevice final : public DeviceMemory {
 public:
  explicit CountingDevice(DeviceTopology topology) : offsets_(std::move(topology)) {}

  [[nodiscard]] DeviceTopology const& topology() const noexcept override {
    return offsets_.topology();
  }
  [[nodiscard]] std::uint64_t maxRegionBytes() const noexcept override {
    return offsets_.maxRegionBytes();
  }
  [[nodiscard]] std::optional<DeviceRegion> tryAllocate(std::uint64_t nbytes,
                                                        DomainId domain) override;
  void release(DeviceRegion const& region) noexcept override;

  [[nodiscard]] std::uint64_t inUse() const noexcept { return in_use_; }

 private:
  OffsetDevice offsets_;
  std::uint64_t in_use_ = 0;
  bool asked_ = false;  ///< a tryAllocate is in progress
};

class AnyWorld;

/// Memory that the checks know of: no two buffers that are alive overlap.
class Buffer {
 public:
  Buffer() noexcept = default;
  Buffer(AnyWorld& world, CompositeAddress&& address);
  Buffer(Buffer&& other) noexcept = default;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { reset(); }
  void reset() noexcept;
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(address_); }
  [[nodiscard]] CompositeAddress const& address() const noexcept { return address_; }

 private:
  AnyWorld* world_ = nullptr;
  CompositeAddress address_;
};

/// How a request ended.
struct Outcome {
  Buffer buffer = {};
  std::optional<FailureReason> failure = std::nullopt;
  bool interrupted = false;
  std::uint32_t reclaims = 0;
  bool has_cause = false;

  [[nodiscard]] bool served() const noexcept { return static_cast<bool>(buffer); }
};

struct WorldOptions {
  std::uint64_t blocks = 2;  ///< capacity of each domain, in blocks
  std::uint32_t domains = 1;
  std::uint32_t regions = 1;
  Acquisition acquisition = Acquisition::upfront;
  std::vector<std::uint64_t> fallback_blocks = {1};
  Duration max_wait = std::chrono::hours(1);
  CallbackErrors callback_errors = CallbackErrors::as_cause;
  std::uint64_t overtake_limit = 1024;
  Duration look_again = kLongestWait;
  Faults faults = {};
};

/// What the checks need to know of a world, whatever its strategy.
class AnyWorld {
 public:
  AnyWorld() = default;
  AnyWorld(AnyWorld const&) = delete;
  AnyWorld& operator=(AnyWorld const&) = delete;
  virtual ~AnyWorld() = default;

  void thread(Scheduler::Body body) { Scheduler::instance().spawn(std::move(body)); }
  /// Run when all threads have ended, before the allocator goes.
  void atEnd(Scheduler::Body check) { end_checks_.push_back(std::move(check)); }
  /// Run when all sleep; beside the check that nobody sleeps who could be served.
  void whenAllSleep(Scheduler::Body check) { sleep_checks_.push_back(std::move(check)); }
  /// Keeps memory until the checks at the end are done.
  void keep(Buffer buffer) { kept_.push_back(std::move(buffer)); }
  void require(bool holds, std::string_view kind, std::string_view text = {});
  /// Something that lives as long as the world.
  template <class T, class... Arguments>
  [[nodiscard]] T& own(Arguments&&... arguments) {
    auto thing = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    T& reference = *thing;
    owned_.push_back(std::move(thing));
    return reference;
  }

  /// For scenarios in which a request may sleep though it would fit, and which say why.
  void mayLeaveAsleep() noexcept { may_leave_asleep_ = true; }
  /// For scenarios in which somebody can always go on.
  void someoneIsAlwaysAwake() noexcept { always_awake_ = true; }
  /// For scenarios that break the lock rules to show what comes of it.
  void withoutLockRules() noexcept { lock_rules_ = false; }
  [[nodiscard]] bool hasLockRules() const noexcept { return lock_rules_; }

  // --- for Buffer and the runner
  void appears(CompositeAddress const& address);
  void disappears(CompositeAddress const& address) noexcept;
  virtual void checkSleepers() = 0;
  virtual void finish() = 0;

 protected:
  std::map<DeviceAddress, std::uint64_t> alive_;
  std::vector<Buffer> kept_;
  std::vector<Scheduler::Body> end_checks_;
  std::vector<Scheduler::Body> sleep_checks_;
  std::vector<std::shared_ptr<void>> owned_;
  bool may_leave_asleep_ = false;
  bool always_awake_ = false;
  bool lock_rules_ = true;
};

/// One allocator, its device, and the requests in it.
template <class Strategy>
class World final : public AnyWorld {
 public:
  using Allocator = FlexAllocator<Strategy>;
  static constexpr bool kHolds = std::same_as<Strategy, HoldMutexDuringCallback>;

  /// Makes the allocator. First thing in a scenario.
  void build(WorldOptions const& options);
  /// Whether the thread sleeps inside a request.
  [[nodiscard]] bool waits(int thread) const noexcept {
    return pending_[static_cast<std::size_t>(thread)].has_value() &&
           Scheduler::instance().asleep(thread);
  }
  void checkSleepers() override;
  /// The common checks; the allocator is gone afterwards.
  void finish() override;

  [[nodiscard]] Allocator& allocator() noexcept { return *allocator_; }
  [[nodiscard]] CountingDevice& device() noexcept { return *device_; }
  [[nodiscard]] Statistics statistics() { return allocator_->statistics(); }
  /// Ends the allocator's life inside the scenario.
  void destroyAllocator() { allocator_.reset(); }

  /// Allocates; whatever comes of it is checked and returned.
  [[nodiscard]] Outcome request(std::uint64_t blocks, RequestOptions const& options = {},
                                AllocationDirective const& directive = {});
  /// The same for a request that must succeed.
  [[nodiscard]] Buffer get(std::uint64_t blocks, RequestOptions const& options = {});
  [[nodiscard]] Buffer tryGet(std::uint64_t blocks);
  [[nodiscard]] Buffer tryAtOnce(std::uint64_t blocks);
  void free(Buffer&& buffer) noexcept { Buffer const gone = std::move(buffer); }
  /// Callback handles that live as long as the world.
  void callback(MemoryPressureCallback callback, int priority = 0);

 private:
  struct Pending {
    std::uint64_t blocks;
    AllocationDirective const* directive;
    bool inside_callback = false;  ///< if it sleeps, it does not wait for memory
  };

  void checkFailure(OutOfMemoryError const& error);
  template <class Call>
  [[nodiscard]] Outcome watch(std::uint64_t blocks, AllocationDirective const& directive,
                              Call call);

  std::shared_ptr<CountingDevice> device_;
  std::unique_ptr<Allocator> allocator_;
  WorldOptions options_;
  std::vector<CallbackHandle> handles_;
  std::array<std::optional<Pending>, kMaxThreads> pending_;
};

/// What a strategy without a gate would be: the mutex alone, from the failed search to the retry
/// but for the callbacks, which let go of it.
class MutexAlone {
 public:
  static constexpr std::string_view kName = "mutex-alone";
  struct Options {};

  MutexAlone(StrategyContext const& /*context*/, Options const& /*options*/) noexcept {}

  [[nodiscard]] bool admit() const noexcept { return true; }
  void onServedAtOnce() noexcept {}
  [[nodiscard]] Verdict resolve(Lock& lock, PressureRequest& request) {
    (void)request.beginReclaim();
    while (request.runNextCallback(lock, CallbackLock::held)) {
      if (request.tryServe()) return Verdict::served;
    }
    return request.tryServe() ? Verdict::served : Verdict::exhausted;
  }
  void onFree() noexcept {}
  void wakeAll() noexcept {}
  void resetAfterFork(bool /*reclaiming*/) noexcept {}
};

static_assert(PressureStrategy<MutexAlone>);

extern template class World<HoldMutexDuringCallback>;
extern template class World<ReleaseAndCondvar>;
extern template class World<MutexAlone>;

/// A scenario by name: sets up a world in which threads wait to be run.
struct Scenario {
  std::string_view name;   ///< "strategy/what"
  std::string_view about;  ///< what it shows, and the clause it belongs to
  enum class Size : std::uint8_t { exhaustive, large } size = Size::exhaustive;
  std::unique_ptr<AnyWorld> (*make)() = nullptr;
  std::string_view shows = {};  ///< the failure it is there to show; empty for all but a few
};

[[nodiscard]] std::vector<Scenario>& allScenarios();

/// Makes what the library makes once and keeps. Before the first run of a process.
void warmUp();

template <auto Setup, class Strategy>
std::unique_ptr<AnyWorld> makeWorld() {
  auto world = std::make_unique<World<Strategy>>();
  Setup(*world);
  return world;
}

#define FLEXALLOC_SCENARIO(function, text, size)                                            \
  [[maybe_unused]] bool const registered_##function = [] {                                  \
    allScenarios().push_back(                                                               \
        {"hold/" #function, text, Scenario::Size::size,                                     \
         &makeWorld<function<HoldMutexDuringCallback>, HoldMutexDuringCallback>});          \
    allScenarios().push_back({"release/" #function, text, Scenario::Size::size,             \
                              &makeWorld<function<ReleaseAndCondvar>, ReleaseAndCondvar>}); \
    return true;                                                                            \
  }()

}  // namespace flex::interleave
