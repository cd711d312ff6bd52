// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device that was in use before a fork is of no use in the child, as with PyTorch's own devices.

namespace spyre_torch {

/// From now on a forked child is a bad one.
void watchForForks();

/// Whether this process was forked from one that had used the device.
[[nodiscard]] bool inBadFork() noexcept;

/// Throws c10::Error, in PyTorch's words, if inBadFork().
void requireNoForkedUse();

}  // namespace spyre_torch
