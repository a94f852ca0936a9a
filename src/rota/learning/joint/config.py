"""Configuration of learning to place and to grow: the keys of a file in `config/learn`."""

import math
from dataclasses import dataclass, field
from pathlib import Path

from rota.core.errors import ConfigError
from rota.learning.joint.cases import TRIALS

LEAST_TREES = TRIALS[0]
"""Fewest trees of a network that a case can be drawn from."""


@dataclass(frozen=True, slots=True)
class JointAgentConfig:
    """An agent that places trials and lets them grow, to be learned from growth trees."""

    recordings: tuple[Path, ...] = ()
    """Growth trees to learn from, or folders of them."""
    leave_out: tuple[str, ...] = ()
    """Names of folders below these that are not learned from, such as `convnet2-digits`."""
    trees: int = 0
    """Number of trees to learn from, at least four of a network; 0 for all that there are."""
    seed: int = 0
    updates: int = 200
    cases_per_update: int = 16
    """Cases of an update, drawn for each update."""
    episodes_per_case: int = 8
    """Episodes of a case; each is compared with the others."""
    drawn: float = 1.0
    """Share of the decisions that are drawn at random and learned from; the others are the best by score."""
    lr: float = 0.01
    """Learning rate at the start; it falls to 0."""
    entropy: float = 0.05
    """Weight of the entropy at the start; it falls to 0."""
    hidden: int = 16
    """Width of the network."""
    rule_cases: int = 120
    """Number of cases on which the best rule is chosen, beside learning."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**31:
            raise ConfigError(f"seed is {self.seed}; give 0 or more, below 2**31")
        if self.trees and self.trees < LEAST_TREES:
            raise ConfigError(f"trees is {self.trees}; give {LEAST_TREES} or more, or 0 for all")
        for name in ("updates", "cases_per_update", "hidden", "rule_cases"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.episodes_per_case < 2:
            raise ConfigError("episodes_per_case must be at least 2: each is compared with the others")
        if not 0.0 < self.drawn <= 1.0:
            raise ConfigError(f"drawn is {self.drawn}; it must be above 0, at most 1")
        if not (0.0 < self.lr < math.inf and 0.0 <= self.entropy < math.inf):
            raise ConfigError("lr must be above 0, entropy 0 or more")


@dataclass(frozen=True, slots=True)
class JointFile:
    """A configuration file of an agent that places trials and lets them grow."""

    joint: JointAgentConfig = field(default_factory=JointAgentConfig)
