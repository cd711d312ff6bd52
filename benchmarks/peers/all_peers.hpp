// SPDX-License-Identifier: Apache-2.0
#pragma once
// The peers that this build has.

#include "peers/flex_peer.hpp"
#include "peers/floor_peers.hpp"
#include "peers/interprocess_peer.hpp"
#include "peers/peer.hpp"
#if FLEXALLOC_WITH_VMA
#include "peers/vma_peer.hpp"
#endif
#if FLEXALLOC_WITH_TBB
#include "peers/tbb_peer.hpp"
#endif
#if FLEXALLOC_WITH_JEMALLOC
#include "peers/jemalloc_peer.hpp"
#endif
#if FLEXALLOC_WITH_MIMALLOC
#include "peers/mimalloc_peer.hpp"
#endif

namespace flexbench {

/// Calls `visit.template operator()<P>()` for each peer P.
template <class Visitor>
void forEachPeer(Visitor const& visit) {
  visit.template operator()<FlexHold>();
  visit.template operator()<FlexRelease>();
  visit.template operator()<Bump>();
  visit.template operator()<LockedBump>();
  visit.template operator()<InterprocessBestFit>();
#if FLEXALLOC_WITH_VMA
  visit.template operator()<Vma>();
#endif
#if FLEXALLOC_WITH_TBB
  visit.template operator()<TbbFixedPool>();
#endif
#if FLEXALLOC_WITH_JEMALLOC
  visit.template operator()<Jemalloc>();
#endif
#if FLEXALLOC_WITH_MIMALLOC
  visit.template operator()<Mimalloc>();
#endif
}

}  // namespace flexbench
