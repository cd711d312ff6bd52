# SPDX-License-Identifier: Apache-2.0
"""Random numbers of the device: the CPU's, from the same seed. In the manner of torch.cuda.random."""

from .. import _torch
from .configuration import device_index

__all__ = [
    "default_generators",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]

#: What operators draw from that are given no generator, one for each device.
default_generators = (_torch.default_generator,)


def manual_seed(seed):
    """Seed the generator; ``torch.manual_seed`` does so, too."""
    _torch.default_generator.manual_seed(int(seed))


manual_seed_all = manual_seed


def seed():
    """Seed the generator with a number that is not known in advance."""
    _torch.default_generator.seed()


seed_all = seed


def initial_seed():
    """The seed that the generator started from."""
    return _torch.default_generator.initial_seed()


def get_rng_state(device="spyre"):
    """The state of the generator, a ByteTensor of the CPU."""
    device_index(device)
    return _torch.default_generator.get_state()


def set_rng_state(new_state, device="spyre"):
    """Put the generator into a state that :func:`get_rng_state` returned."""
    device_index(device)
    _torch.default_generator.set_state(new_state)


def get_rng_state_all():
    """The states of all devices' generators, a list."""
    return [get_rng_state()]


def set_rng_state_all(new_states):
    """Set the states of all devices' generators."""
    for device, state in enumerate(new_states):
        set_rng_state(state, device)
