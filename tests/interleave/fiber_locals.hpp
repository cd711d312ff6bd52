// SPDX-License-Identifier: Apache-2.0
#pragma once
// Included before everything else where the library is compiled for the scheduler: gathers
// variables that are thread_local in one section, of which the scheduler keeps a copy for each of
// its threads.

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wkeyword-macro"
#endif
// NOLINTNEXTLINE(bugprone-reserved-identifier): the point is to replace the keyword
#define thread_local __attribute__((section("fiber_locals")))
