// SPDX-License-Identifier: Apache-2.0
// What PyTorch asks of a back end as a whole.

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>

#include "spyre_device.hpp"
#include "spyre_generator.hpp"

namespace spyre_torch {
namespace {

struct SpyreHooks final : public at::PrivateUse1HooksInterface {
  at::Generator const& getDefaultGenerator(c10::DeviceIndex /*index*/) const override {
    return defaultGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex /*index*/) const override {
    return makeGenerator();
  }
  at::Device getDeviceFromPtr(void* /*data*/) const override { return spyreDevice(); }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDeviceCount; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex index) const override { requireDevice(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    requireDevice(index);
    return 0;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex /*index*/) const override { return 0; }
  // The host can address the device, so its own way of resizing does.
  void resizePrivateUse1Bytes(c10::Storage const& storage, std::size_t nbytes) const override {
    at::native::resize_bytes_cpu(storage.unsafeGetStorageImpl(), nbytes);
  }

 private:
  static void requireDevice(c10::DeviceIndex index) {
    TORCH_CHECK(0 <= index && index < kDeviceCount,
                "invalid device ordinal: there is 1 spyre device, number 0, and not ", int{index});
  }
};

[[maybe_unused]] bool const registered = [] {
  at::RegisterPrivateUse1HooksInterface(new SpyreHooks);  // as long as the process
  return true;
}();

}  // namespace
}  // namespace spyre_torch
