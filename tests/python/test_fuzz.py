# SPDX-License-Identifier: Apache-2.0
"""Random calls with random and hostile arguments: only documented errors, books that balance."""

import gc
import os

import hypothesis
import pytest
import spyre_alloc
from hypothesis import stateful
from hypothesis import strategies as st
from support import BLOCK, SLOWNESS, STRATEGIES, small

#: scripts/fuzz asks for more: about eight examples take a second.
MORE = 8 * int(os.environ.get("FLEXALLOC_FUZZ_SECONDS", "0"))
DOCUMENTED = (TypeError, ValueError, OverflowError, MemoryError)


class Interfering(Exception):
    """What hostile objects raise."""


class Hostile:
    """Does something to the machine whenever it is asked for its value, and when it dies."""

    def __init__(self, machine, action):
        self._machine, self._action = machine, action

    def _act(self):
        self._machine.interfere(self._action)

    def __index__(self):
        self._act()
        return 4096

    def __float__(self):
        self._act()
        return 0.001

    def __repr__(self):
        self._act()
        return "hostile"

    def __call__(self, event):
        self._act()

    def __del__(self):
        try:
            self._act()
        except Interfering:
            pass


ACTIONS = st.sampled_from(["free", "allocate", "raise", "collect", "unregister", "forget", "nothing"])
SIZES = st.one_of(
    st.integers(0, 2 * BLOCK),
    st.integers(),
    st.sampled_from(["1KiB", "64KiB", "1TiB", "1e3", "", "-1", "\0", "٣", "1" * 30]),
    st.sampled_from([2**63, 2**64 - 1, 2**64, -1, True, None, 1.5, b"1", [], object()]),
)
ANYTHING = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.text(max_size=5),
    st.lists(st.integers(-1, 3), max_size=4),
    st.sampled_from(["bind", "interleave", "scatter", "tensor", "program", 0, 1, [0], [1, 0], ()]),
)


class Machine(stateful.RuleBasedStateMachine):
    @stateful.initialize(strategy=st.sampled_from(STRATEGIES), collected=st.booleans())
    def start(self, strategy, collected):
        gc.collect()
        gc.disable()  # what happens depends on the calls alone
        gc.freeze()
        device = spyre_alloc.SimulatedDevice(16 * BLOCK, domains=2)
        options = dict(regions=2, max_wait=0.001, gc=collected)
        self.alloc = spyre_alloc.SpyreAllocator(strategy, device=device, **options)
        self.device = device
        self.buffers, self.registrations, self.depth = [], [], 0

    def interfere(self, action):
        if self.depth > 2:
            return
        self.depth += 1
        try:
            if action == "free" and self.buffers:
                self.buffers.pop(0).free()
            elif action == "allocate":
                self.allocate_one(1000)
            elif action == "raise":
                raise Interfering
            elif action == "collect":
                gc.collect()
            elif action == "unregister" and self.registrations:
                self.registrations.pop().unregister()
            elif action == "forget":
                self.buffers.clear()
        except BufferError:
            pass
        finally:
            self.depth -= 1

    def allocate_one(self, nbytes, *arguments, **options):
        try:
            self.buffers.append(self.alloc.allocate(nbytes, *arguments, **options))
        except DOCUMENTED as error:
            assert str(error)
        except Interfering:
            pass

    @stateful.rule(nbytes=SIZES)
    def allocate(self, nbytes):
        self.allocate_one(nbytes)

    @stateful.rule(nbytes=st.integers(1, BLOCK), which=st.integers(0, 4), value=ANYTHING)
    def allocate_with_an_odd_argument(self, nbytes, which, value):
        name = ("domain", "near", "policy", "memory_type", "max_wait")[which]
        if name == "max_wait" and isinstance(value, (int, float)):
            value = min(value, 0.001)
        self.allocate_one(nbytes, **{name: value})

    @stateful.rule(action=ACTIONS, where=st.sampled_from(["nbytes", "domain", "near", "max_wait"]))
    def allocate_with_a_hostile_argument(self, action, where):
        self.allocate_one(**{"nbytes": 1000, where: Hostile(self, action)})

    @stateful.rule(nbytes=SIZES)
    def try_allocate(self, nbytes):
        try:
            buffer = self.alloc.try_allocate(nbytes)
        except DOCUMENTED:
            return
        if buffer is not None:
            self.buffers.append(buffer)

    @stateful.rule(action=ACTIONS, priority=st.integers(-3, 3))
    def register_a_hostile_callback(self, action, priority):
        callback = Hostile(self, action)
        self.registrations.append(
            self.alloc.register_memory_pressure_callback(callback, priority)
        )

    @stateful.rule(action=ACTIONS)
    def leave_hostile_garbage(self, action):
        hostile = Hostile(self, action)
        hostile.me = hostile
        if self.buffers:
            hostile.buffer = self.buffers.pop()
            hostile.buffer.me = hostile

    @stateful.rule(which=st.integers(0, 99))
    def free_one_and_use_it_afterwards(self, which):
        if not self.buffers:
            return
        buffer = self.buffers.pop(which % len(self.buffers))
        buffer.free()
        buffer.free()
        for use in (memoryview, lambda freed: freed.address, lambda freed: freed.chunks):
            with pytest.raises(ValueError):
                use(buffer)

    @stateful.rule()
    def touch_all(self):
        for buffer in self.buffers:
            try:
                view = memoryview(buffer)
            except BufferError:
                assert len(buffer.chunks) > 1
                continue
            if buffer.nbytes:
                view[0] = view[-1] = 7

    @stateful.rule()
    def unregister_all(self):
        while self.registrations:
            self.registrations.pop().unregister()

    @stateful.rule()
    def empty_the_cache(self):
        self.alloc.empty_cache()

    @stateful.rule()
    def lose_the_allocator_and_use_what_it_gave(self):
        lost, registrations = self.buffers, self.registrations
        self.buffers, self.registrations = [], []
        self.alloc = small("release-condvar", max_wait=0.001)
        for buffer in lost:
            assert buffer.freed or buffer.nbytes == len(buffer)
        for registration in registrations:
            registration.unregister()

    @stateful.rule(arguments=st.lists(ANYTHING, max_size=12))
    def make_an_allocator_of_anything(self, arguments):
        try:
            spyre_alloc.SpyreAllocator(*arguments)
        except (*DOCUMENTED, RuntimeError) as error:
            assert str(error)

    @stateful.invariant()
    def the_books_balance(self):
        if not hasattr(self, "alloc"):
            return
        self.alloc.check_invariants()
        stats = self.alloc.memory_stats()
        current = stats["allocated_bytes.all.current"]
        assert current >= sum(-(-buffer.nbytes // 128) * 128 for buffer in self.buffers)
        assert stats["free_bytes"] + current == stats["reserved_bytes.all.current"]
        assert stats["misuses"] == 0

    def teardown(self):
        if hasattr(self, "buffers"):
            self.buffers.clear()
            self.registrations.clear()
        gc.unfreeze()
        gc.enable()


Machine.TestCase.settings = hypothesis.settings(
    max_examples=MORE + (80 if SLOWNESS == 1 else 20), stateful_step_count=30
)
test_random_calls = Machine.TestCase


@pytest.mark.parametrize("name", ["SimulatedDevice", "OffsetDevice", "GcOptions", "NativeWorker"])
@hypothesis.given(arguments=st.lists(ANYTHING, max_size=7))
@hypothesis.settings(max_examples=100 if SLOWNESS == 1 else 20)
def test_random_arguments_of(name, arguments):
    if name == "NativeWorker":
        arguments = [small("hold-mutex", max_wait=0.0), *arguments[:2], *[1] * 2]
    try:
        getattr(spyre_alloc, name)(*arguments)
    except DOCUMENTED as error:
        assert str(error)
