// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where threads stay when the interpreter goes.

#include <vector>

namespace spyre_torch {

// At the end Python ends each daemon thread at the moment it wants the GIL back, up to 3.13 by
// unwinding its stack, and PyTorch's frames do not let that through: the process aborts. A thread
// that is in our allocator just then does not go back to PyTorch. It stays here, detached, until
// the process is gone.

/// Call on every way through the allocator, with nothing locked. Never returns once the gate is
/// shut, unless this thread is the one that shut it or Python does not know it. Any thread,
/// attached or not.
void passExitGate() noexcept;

/// Shuts the gate and waits, detached, until those of `threads` (Python's idents) that ever passed
/// have come to it or ended, at most one second. Requires: attached.
void shutExitGate(std::vector<unsigned long> const& threads);

/// For the child of a fork: only this thread exists.
void resetExitGateAfterFork() noexcept;

}  // namespace spyre_torch
