// SPDX-License-Identifier: Apache-2.0
// How PyTorch switches devices, streams and events. There is one device, and it is synchronous:
// when an operator returns, its work is done. So there is one stream, always idle, and an event is
// the moment at which it was recorded.

#include <chrono>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "spyre_device.hpp"

namespace spyre_torch {
namespace {

using Clock = std::chrono::steady_clock;

c10::Stream onlyStream() noexcept { return c10::Stream(c10::Stream::DEFAULT, spyreDevice()); }

struct SpyreGuardImpl final : public c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDeviceType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    setDevice(device);
    return spyreDevice();
  }
  c10::Device getDevice() const override { return spyreDevice(); }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == kDeviceType, "expected a spyre device, not ", device);
    TORCH_CHECK(device.index() < kDeviceCount, "invalid device ordinal: there is 1 spyre device, ",
                "number 0, and not ", device);
  }
  void uncheckedSetDevice(c10::Device /*device*/) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return kDeviceCount; }
  void synchronizeDevice(c10::DeviceIndex /*index*/) const override {}

  c10::Stream getStream(c10::Device /*device*/) const noexcept override { return onlyStream(); }
  c10::Stream getDefaultStream(c10::Device /*device*/) const override { return onlyStream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device /*device*/, bool /*high*/) const override {
    return onlyStream();
  }
  c10::Stream getNewStream(c10::Device /*device*/, int /*priority*/) const override {
    return onlyStream();
  }
  c10::Stream exchangeStream(c10::Stream /*stream*/) const noexcept override {
    return onlyStream();
  }
  bool queryStream(c10::Stream const& /*stream*/) const override { return true; }
  void synchronizeStream(c10::Stream const& /*stream*/) const override {}

  void record(void** event, c10::Stream const& /*stream*/, c10::DeviceIndex /*index*/,
              c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new Clock::time_point;
    *static_cast<Clock::time_point*>(*event) = Clock::now();
  }
  void destroyEvent(void* event, c10::DeviceIndex /*index*/) const noexcept override {
    delete static_cast<Clock::time_point*>(event);
  }
  void block(void* /*event*/, c10::Stream const& /*stream*/) const override {}
  bool queryEvent(void* /*event*/) const override { return true; }
  void synchronizeEvent(void* /*event*/) const override {}
  double elapsedTime(void* from, void* to, c10::DeviceIndex /*index*/) const override {
    TORCH_CHECK(from != nullptr && to != nullptr, "both events must be recorded first");
    return std::chrono::duration<double, std::milli>(*static_cast<Clock::time_point*>(to) -
                                                     *static_cast<Clock::time_point*>(from))
        .count();
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, SpyreGuardImpl);

}  // namespace
}  // namespace spyre_torch
