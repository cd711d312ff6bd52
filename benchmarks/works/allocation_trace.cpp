// SPDX-License-Identifier: Apache-2.0
#include "works/allocation_trace.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace flexbench {

void TraceBuilder::keep(std::uint32_t nbytes) {
  trace_.persistent.push_back(nbytes);
  live_bytes_ += nbytes;
  trace_.peak_bytes = live_bytes_;
}

std::size_t TraceBuilder::allocate(std::uint32_t nbytes) {
  auto slot = static_cast<std::uint32_t>(trace_.slots);
  if (free_slots_.empty()) {
    ++trace_.slots;
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  trace_.events.push_back({slot, nbytes});
  live_bytes_ += nbytes;
  trace_.peak_bytes = std::max(trace_.peak_bytes, live_bytes_);
  blocks_.push_back({slot, nbytes, true});
  return blocks_.size() - 1;
}

void TraceBuilder::free(std::size_t block) {
  Block& freed = blocks_[block];
  freed.live = false;
  trace_.events.push_back({freed.slot, 0});
  live_bytes_ -= freed.nbytes;
  free_slots_.push_back(freed.slot);
}

AllocationTrace TraceBuilder::finish() {
  for (std::size_t block = blocks_.size(); block-- > 0;) {
    if (isLive(block)) free(block);
  }
  return std::move(trace_);
}

AllocationTrace readTrace(std::string const& path) {
  std::ifstream file(path);
  TraceBuilder builder;
  std::size_t number = 0;
  auto const require = [&](bool holds, char const* what) {
    if (!holds) throw std::runtime_error(path + ":" + std::to_string(number) + ": " + what);
  };
  require(file.good(), "cannot be read");
  for (std::string text; std::getline(file, text);) {
    ++number;
    text.erase(std::min(text.find('#'), text.size()));
    std::istringstream line(text);
    std::string call;
    if (!(line >> call)) continue;
    std::uint64_t value = 0;
    require(text.find('-') == std::string::npos && static_cast<bool>(line >> value) &&
                (line >> std::ws).eof(),
            "a line is 'k', 'a' or 'f' and one number");
    if (call == "f") {
      require(builder.isLive(value), "this block is not live");
      builder.free(value);
      continue;
    }
    require(call == "k" || call == "a", "a line is 'k', 'a' or 'f' and one number");
    require(value > 0 && value <= std::numeric_limits<std::uint32_t>::max(),
            "a size is between 1 byte and 4 GiB");
    if (call == "a") {
      builder.allocate(static_cast<std::uint32_t>(value));
    } else {
      require(builder.allocations() == 0, "blocks that stay come before the others");
      builder.keep(static_cast<std::uint32_t>(value));
    }
  }
  require(builder.allocations() > 0, "has no 'a' line");
  return builder.finish();
}

void writeTrace(AllocationTrace const& trace, std::ostream& out) {
  for (std::uint32_t const nbytes : trace.persistent) out << "k " << nbytes << '\n';
  std::vector<std::size_t> block_in(trace.slots);
  std::size_t blocks = 0;
  for (AllocationTrace::Event const event : trace.events) {
    if (event.nbytes == 0) {
      out << "f " << block_in[event.slot] << '\n';
    } else {
      out << "a " << event.nbytes << '\n';
      block_in[event.slot] = blocks++;
    }
  }
}

}  // namespace flexbench
