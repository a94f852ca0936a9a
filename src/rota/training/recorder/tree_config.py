"""What a `[[trees]]` table in `config/record` may say."""

import math
from dataclasses import dataclass, field

from rota.core.change import Change
from rota.core.errors import ConfigError, unknown
from rota.training.data.chance import check_seed
from rota.training.setup import Setup, check_actions

STARTS = {"early": 0.175, "early-middle": 0.35, "middle": 0.5, "middle-late": 0.675, "late": 0.85}
"""When there is room to grow, as a share of the budget: 70, 140, 200, 270 and 340 s of 400 s."""


@dataclass(frozen=True, slots=True)
class TreesConfig:
    """Every sequence of changes, in each of some scenarios."""

    setup: Setup
    budget_s: float
    """When training is over, on the profiled clock."""
    epoch_s: float
    """A decision is made, and the learning rate falls, once in so many seconds."""
    actions: tuple[str, ...] = ("deepen 0", "deepen 1", "deepen 2", "nothing")
    decisions: int = 3
    scenarios: dict[str, float] = field(default_factory=lambda: dict(STARTS))
    """Name → when the first decision is made, as a share of the budget."""
    seed: int = 0
    more_seeds: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Scenario → seeds to record it with once more, to know the noise."""
    evaluate_every: int = 5
    """After the last decision, evaluate once in so many epochs and at the end."""

    def __post_init__(self) -> None:
        check_actions(self.actions)
        for name in ("budget_s", "epoch_s", "decisions", "evaluate_every"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0 and finite")
        for name, share in self.scenarios.items():
            self._check_scenario(name, share)
        for name in self.more_seeds:
            if name not in self.scenarios:
                raise ConfigError(f"more_seeds: {unknown('scenario', name, self.scenarios)}")
        for _, seed in self.asked():
            check_seed(seed)

    def _check_scenario(self, name: str, share: float) -> None:
        if not name.replace("-", "").isalnum():
            raise ConfigError(f"scenario {name!r}: a name has letters, digits and '-'")
        ends_s = share * self.budget_s + (self.decisions - 1) * self.epoch_s
        if not 0 < share < 1 or ends_s >= self.budget_s:
            raise ConfigError(
                f"scenario {name!r}: {self.decisions} decisions from {share:g} of the budget on, one in "
                f"{self.epoch_s:g} s, are not over before the budget of {self.budget_s:g} s is"
            )

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(Change.parse(text) for text in self.actions)

    def start_s(self, scenario: str) -> float:
        return self.scenarios[scenario] * self.budget_s

    def asked(self) -> list[tuple[str, int]]:
        """Scenario and seed of each tree, those that take least time first."""
        pairs = [(name, self.seed) for name in self.scenarios]
        pairs += [(name, seed) for name, seeds in self.more_seeds.items() for seed in seeds]
        return sorted(dict.fromkeys(pairs), key=lambda pair: (pair[1] != self.seed, -self.scenarios[pair[0]]))
