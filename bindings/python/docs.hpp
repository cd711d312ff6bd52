// SPDX-License-Identifier: Apache-2.0
#pragma once
// Docstrings of SpyreAllocator, in numpydoc form. The first line shows the call, since
// Boost.Python's functions have no signature that inspect could read.

namespace spyre_alloc::docs {

inline constexpr char const* kAllocator =
    R"(SpyreAllocator(strategy='hold-mutex', capacity='8GiB', regions=7, device=None, max_wait=1.0,
               gc=True, acquisition='upfront', max_region='16GiB', fallback_sizes=None,
               region_order='most-free', overtake_limit=1024, callback_errors='cause',
               look_again=0.1)

Device memory, carved out of large regions. When none has room, the strategy decides who runs the
pressure callbacks, who waits, and who gets what comes back.

All members may be called from any thread.

Parameters
----------
strategy : {'hold-mutex', 'release-condvar'}
    ``'hold-mutex'``: pressure events one at a time, the allocator closed to others meanwhile.
    ``'release-condvar'``: one request reclaims, others sleep and are handed what comes back.
capacity : int or str
    Bytes of a simulated device made for this allocator: ``2**30`` or ``'1GiB'``. Excludes `device`.
regions : int
    1 to 64. Upfront: regions per domain, capacity / regions each; the first is for programs, the
    others for tensors, a single one serves both. On demand: the most regions per domain.
device : SimulatedDevice or OffsetDevice, optional
    Where regions come from.
max_wait : float
    Seconds a request may sleep in all, 0 to 86400. 0: it may reclaim but never sleeps.
gc : bool or GcOptions
    Whether and how Python's cyclic garbage collector runs under pressure.
acquisition : {'upfront', 'on-demand'}
    When regions are taken from the device.
max_region : int or str
    No region is larger.
fallback_sizes : sequence of int or str, optional
    On demand: region sizes to try, in this order. Default 12, 8 and 4 GiB.
region_order : {'most-free', 'least-free'}
    Which region is searched first; ties go to the lowest id.
overtake_limit : int
    ``'release-condvar'``: how many requests may be served past the first waiting one.
callback_errors : {'cause', 'propagate'}
    Whether an exception in a callback becomes the cause of the OutOfMemoryError, or is raised as
    it is.
look_again : float
    ``'release-condvar'``: seconds after which the first waiting request runs the callbacks again,
    for what has become garbage since; at most every 100 times as long if nobody is served
    meanwhile. Slow callbacks stretch it.

Raises
------
TypeError, ValueError, OverflowError
    An argument is not what is allowed; the text says what is.
RuntimeError
    The device refuses a region.
)";

inline constexpr char const* kAllocate =
    R"(allocate(nbytes, domain=None, near=None, policy=None, memory_type=None, max_wait=None) -> Buffer

Allocate device memory.

While it fits, the call keeps the GIL and never waits. Otherwise it runs, with the GIL released, the
pressure callbacks and waits as the strategy says, at most `max_wait`. Ctrl-C ends a wait.

Parameters
----------
nbytes : int or str
    Bytes, rounded up to 128. 0 gives a buffer without memory.
domain : int or sequence of int, optional
    Where the memory must be; several are tried in their order.
near : int, optional
    Prefer domains close to this one.
policy : {'bind', 'interleave', 'scatter'}, optional
    One chunk; equal chunks over the domains, all or nothing; several chunks where no single block
    fits. Default ``'bind'``.
memory_type : {'tensor', 'program'}, optional
    Default ``'tensor'``.
max_wait : float, optional
    Seconds, 0 to 86400; default is the allocator's.

Raises
------
OutOfMemoryError
    With `reason`, sizes, and what was tried. A callback's exception is its ``__cause__``.
TypeError, ValueError, OverflowError
    An argument is not what is allowed.
)";

inline constexpr char const* kTryAllocate =
    R"(try_allocate(nbytes, domain=None, near=None, policy=None, memory_type=None) -> Buffer or None

Allocate from what is free, or what the device gives at once. Runs no callback and waits for nobody's
memory. None if nothing fits, or while the strategy lets nobody in.

Parameters and errors are those of `allocate`.
)";

inline constexpr char const* kRegister =
    R"(register_memory_pressure_callback(fn, priority=0) -> Registration

Have ``fn(event)`` called when memory is short.

It runs on the requesting thread, with the GIL held and no lock of the allocator. Callbacks run in
order of rising priority, equal ones in order of registration, until the request can be served;
garbage collection comes at priority 1000. It may allocate (from what is free, or at once an
OutOfMemoryError), free, raise, register and unregister. Its exceptions become the ``__cause__`` of
the OutOfMemoryError, if it comes to one.

Parameters
----------
fn : callable
    Called with a `PressureEvent`; its result is ignored.
priority : int
    Give cheap callbacks a low one.

Returns
-------
Registration
    With ``unregister()``. The allocator keeps `fn` alive, not this object.
)";

inline constexpr char const* kMemoryStats =
    R"(memory_stats() -> dict

Counters in the manner of ``torch.cuda.memory_stats``, in one consistent picture.

``allocation``, ``allocated_bytes`` (rounded up to 128), ``requested_bytes``, ``segment`` (regions) and
``reserved_bytes``, each as ``<name>.all.current``, ``.peak``, ``.allocated``, ``.freed``; and
``free_bytes``, ``largest_free_bytes``, ``capacity_bytes``, ``blocks``, ``metadata_bytes``,
``misuses``, ``num_alloc_retries`` (pressure events), ``num_ooms``.
)";

inline constexpr char const* kPressureStats =
    R"(pressure_stats() -> dict

What pressure did since construction or the last ``reset_accumulated_memory_stats()``; collections are
never reset. Times in nanoseconds.

``events`` (requests that met exhaustion), ``reclaims`` (runs of the callbacks), ``coalesced`` (events
without a reclaim of their own), ``handoffs`` (served by another thread while waiting),
``overtakes``, ``waits``, ``wait_ns``, ``timeouts``, ``callbacks``, ``callback_errors``,
``callbacks_skipped``, ``callback_ns``, ``bytes_reclaimed``, ``growths``, ``deferred_frees``,
``collections`` (that ran), ``collections_skipped`` (that did not), ``collections_fruitless``,
``collection_ns``, ``out_of_memory`` and ``failures`` (a dict by reason).
)";

inline constexpr char const* kMemoryInfo =
    "memory_info() -> (int, int)\n\n"
    "Bytes not allocated, and bytes the allocator can hold. The first need not be in one piece.";

inline constexpr char const* kEmptyCache =
    "empty_cache() -> int\n\n"
    "Give wholly free regions back to the device; they are taken again when needed. Returns their\n"
    "bytes. Releases the GIL.";

inline constexpr char const* kResetPeak =
    "reset_peak_memory_stats() -> None\n\nSet every peak to the current value.";

inline constexpr char const* kResetAccumulated =
    "reset_accumulated_memory_stats() -> None\n\n"
    "Set allocated and freed sums, and the pressure counters, to zero.";

inline constexpr char const* kCheckInvariants =
    "check_invariants() -> None\n\n"
    "Walk over all blocks and compare them with the counters. Releases the GIL.\n\n"
    "Raises\n------\nAssertionError\n    The bookkeeping contradicts itself.";

}  // namespace spyre_alloc::docs
