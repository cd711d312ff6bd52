// SPDX-License-Identifier: Apache-2.0
// Sequences of operations over several allocators, made from what libFuzzer brings: whatever the
// sequence, only the documented errors, invariants after each step, nothing left at the end.
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <variant>
#include <vector>

#include <fuzzer/FuzzedDataProvider.h>

#include <flex/flex_allocator.hpp>
#include <flex/simulated_device.hpp>

namespace flex::fuzz {
namespace {

constexpr std::size_t kAllocators = 3;
constexpr std::size_t kMostSteps = 200;

/// What a callback throws.
struct Boom {};

[[noreturn]] void wrong(char const* what) {
  std::fprintf(stderr, "wrong: %s\n", what);
  std::abort();
}

void expect(bool holds, char const* what) {
  if (!holds) wrong(what);
}

/// Sizes around the edges, and any.
std::uint64_t pickSize(FuzzedDataProvider& data) {
  switch (data.ConsumeIntegralInRange(0, 3)) {
    case 0:
      return data.ConsumeIntegral<std::uint64_t>();
    case 1:
      return data.PickValueInArray<std::uint64_t>(
          {0, 1, 127, 128, 129, 4095, 4096, 16384, UINT64_MAX, UINT64_MAX - 127});
    default:
      return data.ConsumeIntegralInRange<std::uint64_t>(1, 16384);
  }
}

AllocationDirective pickDirective(FuzzedDataProvider& data) {
  AllocationDirective directive;
  directive.policy = static_cast<PlacementPolicy>(data.ConsumeIntegralInRange(0, 2));
  for (int i = data.ConsumeIntegralInRange(0, 3); i > 0; --i) {
    directive.domain_ids.push_back(data.ConsumeIntegralInRange<DomainId>(0, 4));
  }
  if (data.ConsumeBool()) directive.near = data.ConsumeIntegralInRange<DomainId>(0, 4);
  directive.memory_type = static_cast<MemoryType>(data.ConsumeIntegralInRange(0, 1));
  return directive;
}

std::shared_ptr<SimulatedDevice> makeDevice(FuzzedDataProvider& data) {
  SimulatedDeviceOptions options;
  options.topology.domain_capacity.clear();
  for (int i = data.ConsumeIntegralInRange(1, 4); i > 0; --i) {
    options.topology.domain_capacity.push_back(data.ConsumeIntegralInRange<std::uint64_t>(1, 512) *
                                               kGranule);
  }
  if (data.ConsumeBool()) options.table_entries = data.ConsumeIntegralInRange(1U, 8U);
  if (data.ConsumeBool()) options.budget_bytes = data.ConsumeIntegralInRange(128U, 65536U);
  if (data.ConsumeBool()) options.fail_on_call = data.ConsumeIntegralInRange(1U, 16U);
  return std::make_shared<SimulatedDevice>(std::move(options));
}

AllocatorOptions pickOptions(FuzzedDataProvider& data) {
  AllocatorOptions options;
  options.acquisition = data.ConsumeBool() ? Acquisition::on_demand : Acquisition::upfront;
  options.regions = data.ConsumeIntegralInRange(1U, 8U);
  options.fallback_sizes.clear();
  for (int i = data.ConsumeIntegralInRange(1, 3); i > 0; --i) {
    options.fallback_sizes.push_back(data.ConsumeIntegralInRange(1U, 64U) * kGranule);
  }
  options.region_order = data.ConsumeBool() ? RegionOrder::most_free : RegionOrder::least_free;
  options.callback_errors =
      data.ConsumeBool() ? CallbackErrors::propagate : CallbackErrors::as_cause;
  options.max_wait = Duration::zero();  // there is no other thread to wait for
  return options;
}

using AnyOf = std::variant<std::unique_ptr<FlexAllocator<HoldMutexDuringCallback>>,
                           std::unique_ptr<FlexAllocator<ReleaseAndCondvar>>>;

class Run {
 public:
  explicit Run(FuzzedDataProvider& data) : data_(data), device_(makeDevice(data)) {}

  void go() {
    for (std::size_t i = 0; i < kAllocators; ++i) renew(i);
    for (std::size_t i = 0; i < kMostSteps && data_.remaining_bytes() > 0; ++i) {
      step();
      onEach([](auto& allocator) { allocator.checkInvariants(); });
    }
    addresses_.clear();
    onEach([](auto& allocator) {
      allocator.checkInvariants();
      Statistics const now = allocator.statistics();
      expect(now.allocations.current == 0 && now.allocated_bytes.current == 0 &&
                 now.requested_bytes.current == 0 && now.free == now.total,
             "something is left");
    });
    handles_.clear();
    allocators_ = {};
    expect(device_->bytesInUse() == 0, "the device misses a region");
  }

 private:
  void renew(std::size_t i) {
    AllocatorOptions const options = pickOptions(data_);
    try {
      if (data_.ConsumeBool()) {
        allocators_[i] = std::make_unique<FlexAllocator<HoldMutexDuringCallback>>(device_, options);
      } else {
        allocators_[i] = std::make_unique<FlexAllocator<ReleaseAndCondvar>>(device_, options);
      }
    } catch (std::invalid_argument const&) {
    } catch (DeviceError const&) {
    }
  }

  template <class Action>
  void onEach(Action action) {
    for (auto& any : allocators_) {
      std::visit([&](auto& allocator) { allocator ? action(*allocator) : void(); }, any);
    }
  }
  /// What is done with one allocator may throw this and nothing else.
  template <class Action>
  void onOne(Action action) {
    AnyOf& any = allocators_[data_.ConsumeIntegralInRange<std::size_t>(0, kAllocators - 1)];
    try {
      std::visit([&](auto& allocator) { allocator ? action(*allocator) : void(); }, any);
    } catch (std::invalid_argument const&) {
    } catch (OutOfMemoryError const& error) {
      expect(error.what() != nullptr && *error.what() != '\0', "an error without a text");
    } catch (Boom const&) {
    }
  }

  std::size_t anyAddress() {
    return data_.ConsumeIntegralInRange<std::size_t>(0, addresses_.size() - 1);
  }

  void keep(CompositeAddress address, std::uint64_t nbytes) {
    expect(address.nbytes() == nbytes && address.reservedBytes() >= nbytes, "too little");
    std::uint64_t sum = 0;
    for (Chunk const& chunk : address.chunks()) {
      expect(chunk.address % kGranule == 0 && chunk.nbytes % kGranule == 0, "not aligned");
      sum += chunk.nbytes;
    }
    expect(sum == address.reservedBytes(), "chunks do not add up");
    addresses_.push_back(std::move(address));
  }

  void step() {
    switch (data_.ConsumeIntegralInRange(0, 13)) {
      case 0:
      case 1:
      case 2:
        onOne([&](auto& allocator) {
          std::uint64_t const nbytes = pickSize(data_);
          keep(allocator.allocate(nbytes, pickDirective(data_), {.may_wait = data_.ConsumeBool()}),
               nbytes);
        });
        break;
      case 3:
        onOne([&](auto& allocator) {
          std::uint64_t const nbytes = pickSize(data_);
          keep(allocator.allocate(nbytes), nbytes);
        });
        break;
      case 4:
        onOne([&](auto& allocator) {
          std::uint64_t const nbytes = pickSize(data_);
          if (auto address = allocator.tryAllocate(nbytes, pickDirective(data_))) {
            keep(std::move(*address), nbytes);
          }
        });
        break;
      case 5:
        onOne([&](auto& allocator) {
          std::uint64_t const nbytes = pickSize(data_);
          if (auto address = allocator.tryAllocateAtOnce(nbytes, pickDirective(data_))) {
            keep(std::move(*address), nbytes);
          }
        });
        break;
      case 6:
      case 7:
        if (!addresses_.empty())
          addresses_.erase(addresses_.begin() + std::ptrdiff_t(anyAddress()));
        break;
      case 8:  // to its own allocator, to another, or once more
        if (!addresses_.empty()) {
          std::size_t const i = anyAddress();
          onOne([&](auto& allocator) {
            DeallocateResult const result = allocator.deallocate(std::move(addresses_[i]));
            expect((result == DeallocateResult::foreign) == static_cast<bool>(addresses_[i]),
                   "a foreign address was taken, or an own one left");
          });
        }
        break;
      case 9:
        onOne([&](auto& allocator) { (void)allocator.trim(); });
        break;
      case 10:
        onOne([&](auto& allocator) {
          allocator.resetPeakStatistics();
          allocator.resetAccumulatedStatistics();
        });
        break;
      case 11:
        registerCallback();
        break;
      case 12:
        if (!handles_.empty()) handles_.pop_back();
        break;
      default:
        renew(data_.ConsumeIntegralInRange<std::size_t>(0, kAllocators - 1));
        break;
    }
  }

  void registerCallback() {
    int const kind = data_.ConsumeIntegralInRange(0, 4);
    int const priority = data_.ConsumeIntegralInRange(-2, 2);
    onOne([&](auto& allocator) {
      handles_.push_back(allocator.registerMemoryPressureCallback(
          [this, kind, &allocator](Lock& lock) {
            if (kind != 0) lock.unlock();
            if (!addresses_.empty()) addresses_.pop_back();
            if (kind == 2) throw Boom{};
            if (kind == 3) (void)allocator.tryAllocate(kGranule);
            if (kind == 4) (void)allocator.trim();
          },
          priority));
    });
  }

  FuzzedDataProvider& data_;
  std::shared_ptr<SimulatedDevice> device_;
  std::array<AnyOf, kAllocators> allocators_;
  std::vector<CompositeAddress> addresses_;
  std::vector<CallbackHandle> handles_;
};

}  // namespace
}  // namespace flex::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* bytes, std::size_t size) {
  FuzzedDataProvider data(bytes, size);
  flex::fuzz::Run(data).go();
  return 0;
}
