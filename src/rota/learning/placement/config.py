"""What a file in `config/learn` may say about learning to place trials."""

import math
from dataclasses import dataclass, field

from rota.core.errors import ConfigError
from rota.learning.placement.cases import CaseDistribution


@dataclass(frozen=True, slots=True)
class PlacementAgentConfig:
    """An agent that places trials."""

    seed: int = 0
    updates: int = 400
    cases_per_update: int = 16
    """Each is drawn anew."""
    episodes_per_case: int = 8
    """How good one is, is judged by the others of its case."""
    drawn: float = 4.0
    """So many decisions of an episode are drawn, on average, and learned from; the others are what seems
    best. The fewer, the clearer it is what came of them."""
    lr: float = 0.004
    """At first; it falls to nothing."""
    entropy: float = 0.12
    """What it is worth not to be sure, at first; it falls to nothing."""
    hidden: int = 24
    """Width of the network."""
    cases: CaseDistribution = field(default_factory=CaseDistribution)
    tests: int = 60
    """Cases that the agent is tried on afterwards, other than those that it has learned from."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**32:
            raise ConfigError(f"seed is {self.seed}; give 0 or more, below 2**32")
        for name in ("updates", "cases_per_update", "hidden", "tests"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.episodes_per_case < 2:
            raise ConfigError("episodes_per_case must be at least 2: one is judged by the others")
        if not 0.0 < self.drawn < math.inf:
            raise ConfigError(f"drawn is {self.drawn}; it must be above 0")
        if not (0.0 < self.lr < math.inf and 0.0 <= self.entropy < math.inf):
            raise ConfigError("lr must be above 0, entropy 0 or more")


@dataclass(frozen=True, slots=True)
class PlacementFile:
    """A file that asks for an agent that places trials."""

    placement: PlacementAgentConfig
