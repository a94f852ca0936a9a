"""The endless stream of training examples: pass after pass, each in an order of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rota.core.arrays import Array
from rota.training.data.chance import chance


@dataclass(frozen=True, eq=False)
class Taken:
    """Examples taken from the stream, and the chance that goes with each of them."""

    order: Array
    """Which example."""
    shifts: Array
    """Two rows, down and right: how far the crop of each example is shifted, 0 to 2 × the margin."""
    mirrored: Array
    """Whether the example is seen in a mirror."""

    def part(self, start: int, stop: int) -> "Taken":
        """Those from `start` up to `stop`."""
        return Taken(self.order[start:stop], self.shifts[:, start:stop], self.mirrored[start:stop])


class Stream:
    """Examples by position. Pass p and its chances depend on (seed, p) alone, whatever the batches are."""

    def __init__(self, examples: int, *, seed: int, margin: int = 0) -> None:
        self._examples = examples
        self._margin = margin
        self._seed = seed
        self._pass = lru_cache(maxsize=2)(self._drawn)  # a batch takes from two at most, unless it is huge

    def take(self, position: int, size: int) -> Taken:
        """The `size` examples from `position` on."""
        number, start = divmod(position, self._examples)
        if start + size <= self._examples:
            return self._pass(number).part(start, start + size)
        parts = list(self._parts(position, size))
        return Taken(
            np.concatenate([part.order for part in parts]),
            np.concatenate([part.shifts for part in parts], axis=1),
            np.concatenate([part.mirrored for part in parts]),
        )

    def _parts(self, position: int, size: int) -> Iterator[Taken]:
        end = position + size
        while position < end:
            number, start = divmod(position, self._examples)
            stop = min(self._examples, start + end - position)
            yield self._pass(number).part(start, stop)
            position += stop - start

    def _drawn(self, number: int) -> Taken:
        random = chance(self._seed, number)
        order = random.permutation(self._examples)
        shifts = random.integers(0, 2 * self._margin, (2, self._examples), endpoint=True)
        return Taken(order, shifts, random.random(self._examples) < 0.5)
