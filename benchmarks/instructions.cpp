// SPDX-License-Identifier: Apache-2.0
// One fixed piece of work for scripts/count_instructions: what an allocate and a free cost in
// instructions, which is the same in every run, as time is not.
//
//   flexalloc_instructions [pairs]

#include <cstdio>
#include <cstdlib>

#include "peers/flex_peer.hpp"
#include "works/replace_plan.hpp"

namespace flexbench {
namespace {

constexpr std::size_t kLive = 10'000;
constexpr std::uint64_t kSeed = 1;

// Counting is switched on and off by the name of this function, so it keeps one.
extern "C" [[gnu::noinline]] void flexallocCountedPairs(Replacing<FlexHold>& work,
                                                        std::size_t pairs) {
  work.steps(pairs);
}

}  // namespace
}  // namespace flexbench

int main(int argc, char** argv) {
  std::size_t const pairs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100'000;
  flexbench::ReplacePlan const plan(flexbench::kLive, flexbench::kAnySize, 100'000,
                                    flexbench::kSeed);
  flexbench::FlexHold peer({plan.region_bytes});
  flexbench::Replacing<flexbench::FlexHold> work(peer, plan);
  work.steps(flexbench::kLive);
  flexbench::flexallocCountedPairs(work, pairs);
  std::printf("pairs %zu\n", pairs);
  return work.complete() ? 0 : 1;
}
