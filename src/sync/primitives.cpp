// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <flex/sync/primitives.hpp>

namespace flex::sync {

constinit thread_local char thread_token [[gnu::tls_model("initial-exec")]] = 0;

namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

bool canBeOwned() noexcept {
#if defined(__SANITIZE_THREAD__)
  return false;
#else
  static bool const registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  return registered;
#endif
}

void heavyBarrier() noexcept {
  // The caller's own barrier is in the system call, too.
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) || membarrier(MEMBARRIER_CMD_GLOBAL)) return;
  // Only a system-call filter that came after the registration can do this. To go on would be to
  // let two threads in.
  std::fputs("flexalloc: membarrier(2) worked and is refused now\n", stderr);
  std::abort();
}

void backOff(unsigned looks) noexcept {
  constexpr unsigned kYields = 16;
  if (looks < kYields) {
    boost::this_thread::yield();
  } else {  // a thread of lower priority gets no processor from a yield
    ::timespec const pause{.tv_sec = 0, .tv_nsec = 50'000};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace flex::sync
