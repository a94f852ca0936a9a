"""Population-based training: a trial that does badly continues as a copy of one that does well, perturbed."""

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
class GrowthAtClone:
    """Growth of networks when they are cloned."""

    probability: float = 0.0
    """Probability that a clone also grows."""
    actions: tuple[str, ...] = ()
    """Possible changes, such as `deepen 0`, `widen 1 64`."""
    most: int = 3
    """Most changes of a network in total."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.probability <= 1.0 or self.most < 0:
            raise ConfigError(
                f"probability is {self.probability}, most {self.most}; give 0 to 1, and 0 or more"
            )
        for action in self.actions:
            if not Change.parse(action).grows:
                raise ConfigError(f"actions: {action!r} does not grow a network; deepen or widen")
        if self.probability and not self.actions:
            raise ConfigError("actions: none; give some: 'deepen 0', 'widen 1 64'")

    def grown(self, changes: tuple[str, ...], random: np.random.Generator) -> tuple[str, ...]:
        """Return the changes of a network, perhaps with one more; the same width is never added again."""
        if not self.probability or random.random() >= self.probability or len(changes) >= self.most:
            return changes
        useful = [action for action in self.actions if not (action.startswith("widen") and action in changes)]
        return (*changes, useful[int(random.integers(len(useful)))]) if useful else changes


@dataclass(frozen=True, slots=True)
class Pbt:
    """Truncation selection: a trial in the lower quantile continues as a copy of one in the upper quantile.

    It takes over the donor's network, weights, optimiser and hyper-parameters, the latter perturbed. It keeps
    its own steps, budget and place in the queue. Finished trials are donors too. A metric of NaN after an
    interval ranks lowest.
    """

    quantile: float = 0.25
    """Share of the population that is replaced, and of that which replaces it."""
    interval: int | None = None
    """Steps between two reviews of a trial; the interval of its reports if not given."""
    space: dict[str, Space] | None = field(default=None, hash=False)
    """Values that hyper-parameters may take; by default their initial values: those in `population.start`, or
    in a simulation the recorded ones. Hyper-parameters that are not named here are not explored. An empty
    table means lr and momentum in their usual ranges."""
    resample: float = 0.25
    """Probability that a hyper-parameter is drawn again."""
    factors: tuple[float, ...] = (0.8, 1.2)
    """Factors by one of which a number is multiplied otherwise."""
    clamp: bool = True
    """Keep to the bounds; without it factors may leave them, as in some originals."""
    keep: tuple[str, ...] = ()
    """Hyper-parameters that a trial never takes over."""
    grow: GrowthAtClone = field(default_factory=GrowthAtClone)
    """Growth of networks when they are cloned."""
    exploit: bool = True
    """Take over the donor's weights; without it a trial that does badly only explores."""
    explore: bool = True
    """Perturb hyper-parameters and grow networks; without it clones are exact."""

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
        """Raise ConfigError if trials lack a named hyper-parameter, or have no metric at the first review."""
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
        """Return a copy that explores the initial values of trials, unless a space is given.

        On growth trees clones are exact: nothing else was recorded.
        """
        if not trials.explorable:
            if self.space or self.grow.probability:
                raise ConfigError(
                    "space, grow: trials walk along growth trees, each of which has its hyper-parameters; "
                    "there clones are exact, so leave these out"
                )
            return replace(self, explore=False)
        if self.space is not None:
            return self
        found = {name: space_of(choice) for name, choice in trials.choices().items() if name not in self.keep}
        space = {name: space for name, space in found.items() if space is not None}
        return replace(self, space=space) if space else self

    def decide(self, view: PopulationView, trial: int) -> Continue | Clone:
        interval = self.interval or view.terms.interval
        if view.fresh[trial] < interval:
            return Continue(trial)
        ranking = view.ranking(interval)
        lower, upper = quantiles(len(ranking), self.quantile)
        if ranking.rank(trial) not in lower:
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
    """Return the ranks of the worst and of the best trials among so many.

    Both have equally many, at least one, and no trial in common; with fewer than two trials both are empty.
    """
    count = min(ceil(share * ranked), ranked // 2)
    return range(count), range(ranked - count, ranked)
