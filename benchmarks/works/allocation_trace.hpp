// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fixed list of calls to an allocator, generated or read from a file, that can be played again
// and again.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace flexbench {

/// Everything that the events allocate they also free; beside it live blocks that stay.
struct AllocationTrace {
  struct Event {
    std::uint32_t slot;
    std::uint32_t nbytes;  ///< 0: free the slot
  };

  std::vector<std::uint32_t> persistent;  ///< sizes of what stays
  std::vector<Event> events;
  std::size_t slots = 0;         ///< live at once, at most, beside the persistent ones
  std::uint64_t peak_bytes = 0;  ///< of everything live, the persistent ones included
};

/// Writes a trace down call by call. Blocks are numbered from 0 in the order of their allocation.
class TraceBuilder {
 public:
  /// A block that stays. Requires: nothing was allocated yet.
  void keep(std::uint32_t nbytes);
  /// Requires: nbytes > 0.
  std::size_t allocate(std::uint32_t nbytes);
  /// Requires: isLive(block).
  void free(std::size_t block);
  [[nodiscard]] bool isLive(std::size_t block) const {
    return block < blocks_.size() && blocks_[block].live;
  }
  [[nodiscard]] std::size_t allocations() const { return blocks_.size(); }
  /// Frees what is still live, the last block first.
  [[nodiscard]] AllocationTrace finish();

 private:
  struct Block {
    std::uint32_t slot;
    std::uint32_t nbytes;
    bool live;
  };

  AllocationTrace trace_;
  std::uint64_t live_bytes_ = 0;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> free_slots_;
};

/// The text form: one call a line, `k NBYTES` (a block that stays; these come first), `a NBYTES`
/// (allocate) or `f BLOCK` (free the block, counted from 0 over the `a` lines); `#` begins a
/// comment. Throws std::runtime_error, with the line, for anything else, and for a file that cannot
/// be read or has no call.
[[nodiscard]] AllocationTrace readTrace(std::string const& path);
void writeTrace(AllocationTrace const& trace, std::ostream& out);

}  // namespace flexbench
