"""Asynchronous successive halving for sweeps, of a whole table or of one log at a time.

The rule is that of `rota.policies.evolution.asha`.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rota.policies.evolution.asha import Mode, limit_of, losers, loses, rungs
from rota.sweeps.trial import DB_ITERATION, DB_METRIC, DB_TRIAL_ID

if TYPE_CHECKING:
    import pandas as pd


class ASHA:
    """A pruner of trials outside the best 1 ÷ reduction_factor of those that reached the same rung."""

    def __init__(
        self, metric: str, mode: Mode, reduction_factor: float = 4, min_t: int = 1, max_t: int = 50
    ) -> None:
        if mode not in ("min", "max"):
            raise AssertionError(f'mode is {mode!r}; give "min" or "max"')
        if not reduction_factor > 1:
            raise AssertionError(f"reduction_factor is {reduction_factor}; it must be above 1")
        if not max_t > min_t > 0:
            raise AssertionError(f"min_t is {min_t}, max_t {max_t}; give max_t > min_t > 0")
        self.metric, self.mode = metric, mode
        self.reduction_factor, self.min_t, self.max_t = reduction_factor, min_t, max_t
        self._rungs = rungs(reduction_factor, min_t, max_t)

    def find_trials_to_prune(self, database: "pd.DataFrame") -> list[str]:
        """Return the ids of trials that lose at a rung, from the largest rung on, in the order of rows.

        A trial that loses at two rungs is listed twice. Iterations count from 0 if there is an iteration 0.
        """
        iterations = database[DB_ITERATION].to_numpy()
        values = database[f"{DB_METRIC}{self.metric}"].to_numpy(float)
        trials = database[DB_TRIAL_ID].to_numpy()
        first = 0 if (iterations == 0).any() else 1
        found: list[str] = []
        for rung in self._rungs:
            there = iterations == rung - 1 + first
            lost = losers(values[there], self.reduction_factor, self.mode)
            found += trials[there][lost].tolist()
        return found


@dataclass
class _Rung:
    """The values that were logged at one rung."""

    values: list[float] = field(default_factory=list)
    of: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Trial → its values: one, unless it logged an iteration twice."""
    limit: float | None = None
    """The threshold of the best; None if it must be recomputed."""


class Rungs:
    """An incremental ASHA: the same decision at each log, without a pass over the table."""

    def __init__(self, asha: ASHA) -> None:
        self.asha = asha
        self._at: dict[float, _Rung] = {
            iteration: _Rung() for rung in asha._rungs for iteration in (rung, rung - 1)
        }
        self._first = 1

    def add(self, trial: int, iteration: int, value: float) -> None:
        """Add a logged value."""
        if iteration == 0:
            self._first = 0
        rung = self._at.get(iteration)
        if rung is not None:
            rung.values.append(value)
            rung.of[trial].append(value)
            rung.limit = None

    def forget(self, trial: int) -> None:
        """Remove the values of a trial that starts again."""
        for rung in self._at.values():
            for value in rung.of.pop(trial, []):
                rung.values.remove(value)
                rung.limit = None

    def prune(self, trial: int) -> bool:
        """Return whether a trial loses at a rung that it has reached, by all values so far."""
        return any(self._loses(trial, self._at[rung - 1 + self._first]) for rung in self.asha._rungs)

    def _loses(self, trial: int, rung: _Rung) -> bool:
        if trial not in rung.of:
            return False
        if rung.limit is None:
            rung.limit = limit_of(rung.values, self.asha.reduction_factor, self.asha.mode)
        return any(loses(value, rung.limit, self.asha.mode) for value in rung.of[trial])
