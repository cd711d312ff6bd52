// SPDX-License-Identifier: Apache-2.0
// A callback is lent the lock: it cannot keep a copy.

#include <flex/sync/mutex.hpp>

void callback(flex::Lock& lent) {
#if FLEXALLOC_MISUSE
  flex::Lock kept(lent);
  (void)kept.owned();
#else
  flex::Lock const& kept(lent);
  (void)kept.owned();
#endif
}
