"""Shares of a population: how many trials a slot has at a time, from scores (n0, the static part of ERA).

There are two ways to divide a population over slots. `spa` is proportional, and a slot may get none. `gpa`
gives each slot one trial before it divides the rest in proportion.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import cycle
from math import floor
from typing import Literal

import numpy as np

from rota.core.population.view import PopulationView

Split = Literal["gpa", "spa"]
"""How trials are divided over slots."""


def spa(scores: Sequence[float], trials: int) -> list[int]:
    """Divide in proportion, rounded down; the remainder goes to the best, one each. A score of 0 gets none.

    If no score is above 0, all get the same, and the first ones one more if it does not divide evenly.
    """
    if not any(score > 0.0 for score in scores):
        return [trials // len(scores) + (at < trials % len(scores)) for at in range(len(scores))]
    total = sum(max(0.0, score) for score in scores)
    shares = [floor(max(0.0, score) / total * trials) for score in scores]
    best_first = [at for at in _ascending(scores)[1] if scores[at] > 0.0]
    for at, _ in zip(cycle(best_first), range(trials - sum(shares)), strict=False):
        shares[at] += 1
    return shares


def gpa(scores: Sequence[float], trials: int, least: float | None = None) -> list[int]:
    """Give one each, and the rest in proportion; with fewer trials than slots, one to each of the best.

    A score below `least` counts as `least`. The original takes 1, which suits images per second but makes all
    speeds below 1 equal; by default it is the smallest score above 0.
    """
    if least is None:
        least = min((score for score in scores if score > 0.0), default=1.0)
    scores = [max(least, score) for score in scores]
    worst_first, best_first = _ascending(scores)
    spare = trials - len(scores)
    if spare < 0:
        best = set(best_first[:trials])
        return [int(at in best) for at in range(len(scores))]
    total = sum(scores)
    shares = [1 + round(score / total * spare) for score in scores]
    _mend(shares, trials, worst_first, best_first)
    return shares


def _mend(shares: list[int], trials: int, worst_first: list[int], best_first: list[int]) -> None:
    """Correct rounding: add one to the best, or take one from the worst, in turn until the sum is right."""
    for at in cycle(best_first):
        if sum(shares) >= trials:
            break
        shares[at] += 1
    for at in cycle(worst_first):
        if sum(shares) <= trials:
            break
        shares[at] -= shares[at] > 1


def _ascending(scores: Sequence[float]) -> tuple[list[int], list[int]]:
    """Return positions by ascending and by descending score; of equals, the earlier first."""
    positions = range(len(scores))
    return sorted(positions, key=lambda at: scores[at]), sorted(positions, key=lambda at: -scores[at])


def shares(view: PopulationView, split: Split) -> list[int]:
    """Return the trials at a time of each slot, divided over the usable slots."""
    return _shares(view.scores.tobytes(), view.usable.tobytes(), len(view.status), split)


@lru_cache(maxsize=256)
def _shares(scores: bytes, usable: bytes, trials: int, split: Split) -> list[int]:
    slots = np.flatnonzero(np.frombuffer(usable, bool)).tolist()
    known = np.frombuffer(scores)
    found = [0] * len(known)
    if slots:
        divide = gpa if split == "gpa" else spa
        for slot, share in zip(slots, divide([float(known[slot]) for slot in slots], trials), strict=True):
            found[slot] = share
    return found


def original_shares(view: PopulationView, split: Split) -> list[int]:
    """Return the original shares: each slot has the whole share of its node and device, even if absent."""
    slots = view.cluster.all_slots
    entries = {(slot.node, slot.device): slot.speed for slot in reversed(slots)}
    ordered = sorted(entries, key=lambda entry: (entry[1] != "cpu", entry[0]))
    scores = [entries[entry] for entry in ordered]
    trials = len(view.status)
    found = gpa(scores, trials, least=1.0) if split == "gpa" else spa(scores, trials)
    each = dict(zip(ordered, found, strict=True))
    return [each[slot.node, slot.device] for slot in slots]
