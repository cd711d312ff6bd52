// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors and look at them in other ways. PyTorch's own kernels for views do
// not touch the memory, so they serve any device.

#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <torch/library.h>

#include "spyre_device.hpp"
#include "torch_allocator.hpp"

namespace spyre_torch {
namespace {

void requirePlain(std::optional<at::Layout> layout, std::optional<at::Device> device,
                  std::optional<bool> pin_memory) {
  TORCH_CHECK(!layout || *layout == at::kStrided, "spyre has strided tensors only, not ", *layout);
  TORCH_CHECK(!device || device->index() < kDeviceCount,
              "invalid device ordinal: there is 1 spyre device, number 0, and not ", *device);
  TORCH_CHECK(!pin_memory || !*pin_memory, "only tensors of the CPU can be pinned");
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                 std::optional<bool> pin_memory, std::optional<at::MemoryFormat> format) {
  requirePlain(layout, device, pin_memory);
  return at::detail::empty_generic(size, &TorchAllocator::instance(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   at::dtype_or_default(dtype), format);
}

at::Tensor emptyStrided(at::IntArrayRef size, at::IntArrayRef stride,
                        std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                        std::optional<at::Device> device, std::optional<bool> pin_memory) {
  requirePlain(layout, device, pin_memory);
  return at::detail::empty_strided_generic(size, stride, &TorchAllocator::instance(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           at::dtype_or_default(dtype));
}

at::Tensor& setStorage(at::Tensor& self, at::Storage source) {
  auto const elements =
      static_cast<std::int64_t>(source.nbytes() / static_cast<std::size_t>(self.itemsize()));
  return at::native::set_storage_cpu_(self, std::move(source), 0, {elements}, {});
}

at::Tensor& setNothing(at::Tensor& self) {
  return at::native::set_storage_cpu_(
      self,
      at::detail::empty_generic({0}, &TorchAllocator::instance(),
                                c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                self.scalar_type(), std::nullopt)
          .storage(),
      0, {0}, {});
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &emptyStrided);
  library.impl("resize_", &at::native::resize_);
  library.impl("set_", &setNothing);
  library.impl("set_.source_Storage", &setStorage);
  library.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
  library.impl("set_.source_Tensor", &at::native::set_tensor_);
  library.impl("is_set_to", &at::native::is_set_to);
  library.impl("view", &at::native::view);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("unfold", &at::native::unfold);
  library.impl("view_as_real", &at::native::view_as_real);
  library.impl("view_as_complex", &at::native::view_as_complex);
}

}  // namespace spyre_torch
