# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, SupportsIndex, TypedDict

__version__: str
__all__: list[str]

_Size = SupportsIndex | str
_Seconds = float | SupportsIndex
_Sizes = list[_Size] | tuple[_Size, ...]
_Domain = SupportsIndex | list[SupportsIndex] | tuple[SupportsIndex, ...]
_Strategy = Literal["hold-mutex", "release-condvar"]
_Policy = Literal["bind", "interleave", "scatter"]
_MemoryType = Literal["tensor", "program"]
_Reason = Literal[
    "exhausted",
    "fragmented",
    "larger-than-any-region",
    "timed-out",
    "inside-callback",
    "inside-finalizer",
    "must-not-wait",
    "callback-failed",
    "interpreter-finalizing",
    "closed",
]

class _Chunk(TypedDict):
    address: int
    offset: int
    nbytes: int
    region: int
    domain: int

class OutOfMemoryError(MemoryError):
    requested: int
    free: int
    largest_free: int
    total: int
    domain: int | None
    memory_type: _MemoryType
    reason: _Reason
    reclaims: int
    bytes_reclaimed: int
    waited_ms: float

class Buffer:
    @property
    def nbytes(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def chunks(self) -> tuple[_Chunk, ...]: ...
    @property
    def freed(self) -> bool: ...
    def free(self) -> None: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Buffer: ...
    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool: ...
    def __buffer__(self, flags: int) -> memoryview: ...

class PressureEvent:
    @property
    def requested(self) -> int: ...
    @property
    def free(self) -> int: ...
    @property
    def largest_free(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def domain(self) -> int | None: ...
    @property
    def memory_type(self) -> _MemoryType: ...

class Registration:
    @property
    def registered(self) -> bool: ...
    def unregister(self) -> None: ...

class DeviceMemory: ...

class SimulatedDevice(DeviceMemory):
    def __init__(
        self,
        capacity: _Size = "8GiB",
        domains: SupportsIndex = 1,
        table_entries: SupportsIndex | None = None,
        max_region: _Size | None = None,
        budget: _Size | None = None,
        latency: _Seconds = 0.0,
        fail_on_call: SupportsIndex | None = None,
    ) -> None: ...
    @property
    def calls(self) -> int: ...
    @property
    def bytes_in_use(self) -> int: ...

class OffsetDevice(DeviceMemory):
    def __init__(self, capacity: _Size = "8GiB", domains: SupportsIndex = 1) -> None: ...

class GcOptions:
    def __init__(
        self,
        young_first: bool = False,
        respect_disable: bool = False,
        patience: _Seconds = 1.0,
        min_interval: _Seconds = 0.0,
        budget: _Seconds = 0.5,
        burst: _Seconds = 1.0,
    ) -> None: ...
    @property
    def young_first(self) -> bool: ...
    @property
    def respect_disable(self) -> bool: ...
    @property
    def patience(self) -> float: ...
    @property
    def min_interval(self) -> float: ...
    @property
    def budget(self) -> float: ...
    @property
    def burst(self) -> float: ...

class SpyreAllocator:
    def __init__(
        self,
        strategy: _Strategy = "hold-mutex",
        capacity: _Size | None = ...,
        regions: SupportsIndex = 7,
        device: DeviceMemory | None = None,
        max_wait: _Seconds = 1.0,
        gc: bool | GcOptions = True,
        acquisition: Literal["upfront", "on-demand"] = "upfront",
        max_region: _Size = "16GiB",
        fallback_sizes: _Sizes | None = None,
        region_order: Literal["most-free", "least-free"] = "most-free",
        overtake_limit: SupportsIndex = 1024,
        callback_errors: Literal["cause", "propagate"] = "cause",
        look_again: float = 0.1,
    ) -> None: ...
    @property
    def strategy(self) -> _Strategy: ...
    def allocate(
        self,
        nbytes: _Size,
        domain: _Domain | None = None,
        near: SupportsIndex | None = None,
        policy: _Policy | None = None,
        memory_type: _MemoryType | None = None,
        max_wait: _Seconds | None = None,
    ) -> Buffer: ...
    def try_allocate(
        self,
        nbytes: _Size,
        domain: _Domain | None = None,
        near: SupportsIndex | None = None,
        policy: _Policy | None = None,
        memory_type: _MemoryType | None = None,
    ) -> Buffer | None: ...
    def register_memory_pressure_callback(
        self, fn: Callable[[PressureEvent], object], priority: SupportsIndex = 0
    ) -> Registration: ...
    def memory_stats(self) -> dict[str, int]: ...
    def pressure_stats(self) -> dict[str, Any]: ...
    def memory_info(self) -> tuple[int, int]: ...
    def empty_cache(self) -> int: ...
    def reset_peak_memory_stats(self) -> None: ...
    def reset_accumulated_memory_stats(self) -> None: ...
    def check_invariants(self) -> None: ...

class NativeWorker:
    def __init__(
        self,
        allocator: SpyreAllocator,
        nbytes: _Size,
        live: SupportsIndex = 1,
        iterations: SupportsIndex = 0,
        pause: _Seconds = 0.0,
    ) -> None: ...
    @property
    def allocations(self) -> int: ...
    @property
    def out_of_memory(self) -> int: ...
    @property
    def errors(self) -> int: ...
    def stop(self) -> None: ...
    def join(self) -> None: ...
    def latencies(self) -> list[int]: ...
