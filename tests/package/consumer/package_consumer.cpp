// SPDX-License-Identifier: Apache-2.0
// The smallest program that a user of the installed package would write.

#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>

#include <flex/flex_allocator.hpp>
#include <flex/simulated_device.hpp>
#include <flex/strategies/hold_mutex_during_callback.hpp>
#include <flex/version.hpp>

int main() {
  flex::FlexAllocator<> allocator(std::make_shared<flex::SimulatedDevice>(64 * flex::kMiB));
  auto address = allocator.allocate(flex::kMiB);
  std::cout << "flexalloc " << flex::kVersion << ": " << address.nbytes() << " bytes\n";
  allocator.deallocate(std::move(address));
  return EXIT_SUCCESS;
}
