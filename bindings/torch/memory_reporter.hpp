// SPDX-License-Identifier: Apache-2.0
#pragma once
// What happens on every allocation and release.

#include <memory>

#include <spyre/spyre_allocator.hpp>

namespace spyre_torch {

/// Tells PyTorch's profiler of allocations and releases, and gives the host's memory behind a large
/// released block back to the system. Every thread passes the exit gate here.
///
/// Thread-safe.
[[nodiscard]] std::shared_ptr<spyre::MemoryReporter> makeMemoryReporter();

}  // namespace spyre_torch
