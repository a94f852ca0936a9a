"""Population-based training: who does badly goes on as one who does well, a little differently."""

from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from rota.core.errors import ConfigError, unknown
from rota.core.network import Change
from rota.core.population.events import Clone, Continue, Hyper
from rota.core.population.view import PopulationView
from rota.policies.config import TrialsConfig, in_words, space_of
from rota.policies.evolution.explore import USUAL, Explorer, Space


@dataclass(frozen=True, slots=True)
class Grow:
    """Networks that grow when they are cloned."""

    probability: float = 0.0
    """That a clone is also changed."""
    actions: tuple[str, ...] = ()
    """What may be done to it: `deepen 0`, `widen 1 64`."""
    most: int = 3
    """Changes that a network may have behind it."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.probability <= 1.0 or self.most < 0:
            raise ConfigError(
                f"probability is {self.probability}, most {self.most}; give 0 to 1, and 0 or more"
            )
        for action in self.actions:
            if not Change.parse(action).grows:
                raise ConfigError(f"actions: {action!r} does not grow a network; deepen or widen")
        if self.probability and not self.actions:
            raise ConfigError("actions: none; say what may be done: 'deepen 0', 'widen 1 64'")

    def grown(self, changes: tuple[str, ...], random: np.random.Generator) -> tuple[str, ...]:
        """The same network, or one with a change more. To widen again to the same width changes nothing."""
        if not self.probability or random.random() >= self.probability or len(changes) >= self.most:
            return changes
        useful = [action for action in self.actions if not (action.startswith("widen") and action in changes)]
        return (*changes, useful[int(random.integers(len(useful)))]) if useful else changes


@dataclass(frozen=True, slots=True)
class Pbt:
    """Truncation selection: a trial of the lower quantile goes on as one of the upper quantile.

    It takes over the donor's network, weights, optimiser and hyper-parameters, these changed a little. It
    keeps its own steps, budget and place in the queue. Trials that finished are donors, too. A metric that
    is not a number after an interval is the worst there is.
    """

    quantile: float = 0.25
    """Share of the population that is replaced, and that others are replaced by."""
    interval: int | None = None
    """Steps after which a trial is looked at; the interval of its reports if not given."""
    space: dict[str, Space] | None = field(default=None, hash=False)
    """What hyper-parameters may become; if not given, what trials may begin with: all that `population.start`
    names, in a simulation what was recorded. Those that are not named here are not explored. An empty table
    stands for lr and momentum in their usual ranges."""
    resample: float = 0.25
    """How probably a hyper-parameter is drawn afresh."""
    factors: tuple[float, ...] = (0.8, 1.2)
    """By one of which a number is multiplied, else."""
    clamp: bool = True
    """Keep to the bounds; without it factors may lead out of them, as in some originals."""
    keep: tuple[str, ...] = ()
    """Hyper-parameters that a trial never takes over."""
    grow: Grow = field(default_factory=Grow)
    """Networks that grow when they are cloned."""
    exploit: bool = True
    """Take over another's weights; without it a trial that does badly only explores."""
    explore: bool = True
    """Change hyper-parameters and networks; without it trials are cloned as they are."""

    def __post_init__(self) -> None:
        if not 0.0 < self.quantile <= 0.5:
            raise ConfigError(f"quantile is {self.quantile}; it must be above 0 and at most 0.5")
        if self.interval is not None and self.interval < 1:
            raise ConfigError(f"interval is {self.interval}; it must be at least 1")
        if not 0.0 <= self.resample <= 1.0:
            raise ConfigError(f"resample is {self.resample}; it must be 0 to 1")
        if not self.factors or min(self.factors) <= 0.0:
            raise ConfigError(f"factors are {self.factors}; give at least one, above 0")

    def check(self, trials: TrialsConfig) -> None:
        """Whether trials have the hyper-parameters that are named, and are measured by the first look."""
        choices, given = trials.choices(), self.space or {}
        for where, names in (("space", given), ("keep", self.keep)):
            for name in names:
                if name not in choices:
                    raise ConfigError(unknown(f"hyper-parameter in {where}:", name, choices))
        for name, space in given.items():
            if in_words(choices[name]) != bool(space.names):
                how = "words; give names" if in_words(choices[name]) else "numbers; give a range, or values"
                raise ConfigError(f"space.{name}: trials begin with {how}")
        trials.check_measured(self.interval or trials.interval)

    def fitted(self, trials: TrialsConfig) -> "Pbt":
        """Return a copy that explores what trials may begin with, unless a space is given."""
        if self.space is not None:
            return self
        found = {name: space_of(choice) for name, choice in trials.choices().items() if name not in self.keep}
        space = {name: space for name, space in found.items() if space is not None}
        return replace(self, space=space) if space else self

    def judge(self, view: PopulationView, trial: int) -> Continue | Clone:
        interval = self.interval or view.terms.interval
        if view.fresh[trial] < interval:
            return Continue(trial)
        ranking = view.ranking(interval)
        lower, upper = quantiles(len(ranking), self.quantile)
        if ranking.place(trial) not in lower:
            return Continue(trial, reviewed=True)
        better = range(max(upper.start, ranking.above(trial)), upper.stop)
        if not better:
            return Continue(trial, reviewed=True)
        donor = ranking[better[int(view.random.integers(len(better)))]] if self.exploit else trial
        return self._clone(view, trial, donor)

    def _clone(self, view: PopulationView, trial: int, donor: int) -> Clone:
        hyper: Hyper = dict(view.hyper[donor])
        changes = view.changes[donor]
        if self.explore:
            hyper = self._explorer(hyper).explore(hyper, view.random)
            changes = self.grow.grown(changes, view.random)
        own = {name: view.hyper[trial][name] for name in self.keep if name in view.hyper[trial]}
        return Clone(trial, donor, {**hyper, **own}, changes)

    def _explorer(self, hyper: Hyper) -> Explorer:
        spaces = self.space or {name: space for name, space in USUAL.items() if name in hyper}
        return Explorer(spaces, self.resample, self.factors, self.clamp)


def quantiles(ranked: int, share: float) -> tuple[range, range]:
    """Places of those that do worst and of those that do best, among so many.

    Both are equally many, at least one, and nobody is in both; with fewer than two nobody is in either.
    """
    count = min(ceil(share * ranked), ranked // 2)
    return range(count), range(ranked - count, ranked)
