// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plays a trace on a peer.

#include <cstddef>
#include <vector>

#include "peers/peer.hpp"
#include "works/allocation_trace.hpp"

namespace flexbench {

template <Peer P>
class TracePlayer {
 public:
  TracePlayer(P& peer, AllocationTrace const& trace)
      : peer_(peer), trace_(trace), live_(trace.slots), persistent_(trace.persistent.size()) {
    for (std::size_t i = 0; i < persistent_.size(); ++i) {
      persistent_[i] = peer_.allocate(trace_.persistent[i]);
    }
  }
  TracePlayer(TracePlayer const&) = delete;
  TracePlayer& operator=(TracePlayer const&) = delete;
  ~TracePlayer() {
    for (auto& handle : persistent_) {
      if (handle) peer_.deallocate(handle);
    }
  }

  /// All events once; afterwards as much is live as before.
  void play() {
    for (AllocationTrace::Event const event : trace_.events) {
      auto& handle = live_[event.slot];
      if (event.nbytes == 0) {
        peer_.deallocate(handle);
      } else {
        handle = peer_.allocate(event.nbytes);
        complete_ = complete_ && static_cast<bool>(handle);
      }
    }
  }

  [[nodiscard]] bool complete() const { return complete_; }

 private:
  P& peer_;
  AllocationTrace const& trace_;
  std::vector<typename P::Handle> live_;
  std::vector<typename P::Handle> persistent_;
  bool complete_ = true;
};

}  // namespace flexbench
