"""Configuration of learning to place trials: the keys of a file in `config/learn`."""

import math
from dataclasses import dataclass, field

from rota.core.errors import ConfigError
from rota.learning.placement.cases import CaseDistribution


@dataclass(frozen=True, slots=True)
class PlacementAgentConfig:
    """An agent that places trials, to be learned."""

    seed: int = 0
    updates: int = 400
    cases_per_update: int = 16
    """Cases of an update, drawn for each update."""
    episodes_per_case: int = 8
    """Episodes of a case; each is compared with the others."""
    drawn: float = 4.0
    """Mean number of decisions of an episode that are drawn at random and learned from; the others are the
    best by score. The fewer, the clearer their effect."""
    lr: float = 0.004
    """Learning rate at the start; it falls to 0."""
    entropy: float = 0.12
    """Weight of the entropy at the start; it falls to 0."""
    hidden: int = 24
    """Width of the network."""
    cases: CaseDistribution = field(default_factory=CaseDistribution)
    tests: int = 60
    """Number of cases that the agent is tested on afterwards; it has not learned from them."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**32:
            raise ConfigError(f"seed is {self.seed}; give 0 or more, below 2**32")
        for name in ("updates", "cases_per_update", "hidden", "tests"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.episodes_per_case < 2:
            raise ConfigError("episodes_per_case must be at least 2: each is compared with the others")
        if not 0.0 < self.drawn < math.inf:
            raise ConfigError(f"drawn is {self.drawn}; it must be above 0")
        if not (0.0 < self.lr < math.inf and 0.0 <= self.entropy < math.inf):
            raise ConfigError("lr must be above 0, entropy 0 or more")


@dataclass(frozen=True, slots=True)
class PlacementFile:
    """A configuration file of an agent that places trials."""

    placement: PlacementAgentConfig
