// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which fault is switched on, in the build that has faults.

namespace flex::interleave {

/// Number of a mutant in mutate.py, from 1; 0: none.
extern int active_mutant;

/// What stands for MUTANT in a changed source.
inline bool isActive(int mutant) noexcept { return active_mutant == mutant; }

}  // namespace flex::interleave
