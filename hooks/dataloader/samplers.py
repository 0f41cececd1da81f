"""What reading a sampler early would do to the user's random generators.

The samplers of torch draw at their first read only, with one exception: RandomSampler with a
generator of the user's draws one permutation more when it comes to its end. The generator outlives
the epoch, so after an early break its state, and with it the next shuffle, would show how far
somebody read ahead.
"""

from __future__ import annotations

import dataclasses
import random
import sys
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

_QUIET = (
    SequentialSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    DistributedSampler,
)


@dataclasses.dataclass(frozen=True)
class SamplerFacts:
    """`refusal`: why the depth must not change. `tail`: see `conveyor.ReadAhead`. `known`: torch's
    own code."""

    refusal: str | None
    tail: int | None
    known: bool


def examine(index_sampler: Any) -> SamplerFacts:
    """Judges the object whose iterator gives the index batches of a loader. Draws and reads
    nothing."""
    sampler = index_sampler.sampler if type(index_sampler) is BatchSampler else index_sampler
    if type(sampler) is RandomSampler and sampler.generator is not None:
        if sampler.replacement or sampler.num_samples > len(sampler.data_source):
            reason = (
                "the sampler draws from its generator all along: a new depth moves later epochs"
            )
            return SamplerFacts(reason, None, True)
        return SamplerFacts(None, max(0, len(index_sampler) - 1), True)
    if type(sampler) in _QUIET:
        return SamplerFacts(None, None, True)
    if isinstance(sampler, (list, tuple, range)):
        return SamplerFacts(None, None, True)
    if _owns_generator(sampler) or _owns_generator(index_sampler):
        reason = (
            "the sampler keeps a random generator of its own: another depth could move later epochs"
        )
        return SamplerFacts(reason, None, False)
    return SamplerFacts(None, None, False)


def _owns_generator(sampler: Any) -> bool:
    kinds: tuple[type, ...] = (torch.Generator, random.Random)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        kinds += (numpy.random.Generator, numpy.random.RandomState)
    return any(isinstance(value, kinds) for value in getattr(sampler, "__dict__", {}).values())
