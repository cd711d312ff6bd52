// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host memory of a run: what is never freed, and what is used after it was.

#include <cstdint>
#include <string>

namespace flex::interleave {

/// Sees every operator new and delete of the code under test. What is deleted is overwritten and
/// kept until the run has ended, so that a late write is found and a late read finds nonsense.
class HostMemory {
 public:
  /// While one exists, allocations belong to the test and are not looked at.
  class Untracked {
   public:
    Untracked() noexcept { ++depth(); }
    Untracked(Untracked const&) = delete;
    Untracked& operator=(Untracked const&) = delete;
    ~Untracked() { --depth(); }
  };

  /// Nonzero: not tracked. A property of the logical thread, which the scheduler keeps.
  [[nodiscard]] static int& depth() noexcept;

  static void beginRun() noexcept;
  /// Ends the run; what was wrong, or nothing.
  [[nodiscard]] static std::string endRun();
};

}  // namespace flex::interleave
