// SPDX-License-Identifier: Apache-2.0
#include "spyre_generator.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/GeneratorForPrivateuseone.h>

#include "spyre_device.hpp"

namespace spyre_torch {
namespace {

/// A generator of the device around one of the CPU.
class SpyreGenerator final : public c10::GeneratorImpl {
 public:
  explicit SpyreGenerator(at::Generator host)
      : GeneratorImpl(spyreDevice(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        host_(std::move(host)) {}

  [[nodiscard]] static c10::DeviceType device_type() { return kDeviceType; }
  [[nodiscard]] at::Generator const& host() const noexcept { return host_; }

  void set_current_seed(std::uint64_t seed) override { host_.set_current_seed(seed); }
  void set_offset(std::uint64_t offset) override { host_.set_offset(offset); }
  std::uint64_t get_offset() const override { return host_.get_offset(); }
  std::uint64_t current_seed() const override { return host_.current_seed(); }
  std::uint64_t seed() override { return host_.seed(); }
  void set_state(c10::TensorImpl const& state) override {
    host_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return host_.unsafeGetGeneratorImpl()->get_state();
  }

 private:
  SpyreGenerator* clone_impl() const override { return new SpyreGenerator(host_.clone()); }

  at::Generator host_;
};

at::Generator makeForIndex(c10::DeviceIndex index) {
  TORCH_CHECK(index < kDeviceCount, "there is 1 spyre device, number 0, and not ", int{index});
  return makeGenerator();
}

REGISTER_GENERATOR_PRIVATEUSE1(makeForIndex)

}  // namespace

at::Generator makeGenerator() {
  return at::make_generator<SpyreGenerator>(at::detail::createCPUGenerator());
}

at::Generator const& defaultGenerator() {
  static at::Generator& generator = *new at::Generator(makeGenerator());
  return generator;
}

void replaceGenerators(c10::OperatorHandle const& op, torch::jit::Stack* stack) {
  auto const& arguments = op.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    c10::TypePtr const& type = arguments[i].type();
    if (!c10::GeneratorType::get()->isSubtypeOf(*type)) continue;
    c10::IValue& value = (*stack)[stack->size() - arguments.size() + i];
    at::Generator const given = value.isNone() ? defaultGenerator() : value.toGenerator();
    value = at::check_generator<SpyreGenerator>(given)->host();
  }
}

}  // namespace spyre_torch
