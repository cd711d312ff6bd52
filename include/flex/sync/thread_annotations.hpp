// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names for clang's thread-safety attributes; empty under other compilers.

#if defined(__clang__)
#define FLEXALLOC_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define FLEXALLOC_THREAD_ATTRIBUTE(x)
#endif

#define FLEXALLOC_CAPABILITY(x) FLEXALLOC_THREAD_ATTRIBUTE(capability(x))
#define FLEXALLOC_SCOPED_CAPABILITY FLEXALLOC_THREAD_ATTRIBUTE(scoped_lockable)
#define FLEXALLOC_GUARDED_BY(x) FLEXALLOC_THREAD_ATTRIBUTE(guarded_by(x))
#define FLEXALLOC_REQUIRES(...) FLEXALLOC_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define FLEXALLOC_EXCLUDES(...) FLEXALLOC_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define FLEXALLOC_ACQUIRE(...) FLEXALLOC_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define FLEXALLOC_TRY_ACQUIRE(...) FLEXALLOC_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define FLEXALLOC_RELEASE(...) FLEXALLOC_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define FLEXALLOC_ASSERT_CAPABILITY(x) FLEXALLOC_THREAD_ATTRIBUTE(assert_capability(x))
#define FLEXALLOC_RETURN_CAPABILITY(x) FLEXALLOC_THREAD_ATTRIBUTE(lock_returned(x))
#define FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS FLEXALLOC_THREAD_ATTRIBUTE(no_thread_safety_analysis)
