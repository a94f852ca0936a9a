"""Configuration of learning: the keys of a file in `config/learn`."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rota.core.errors import ConfigError
from rota.core.limits import above, at_least

DECAYS = ("decay_every", "lr_decay", "temperature_every", "temperature_decay")


@dataclass(frozen=True, slots=True)
class Method:
    """A method of learning: REINFORCE with a baseline and an entropy bonus."""

    network: Literal["structural", "original"] = "structural"
    """Architecture that reads the network in training."""
    reward: Literal["standard", "tan"] = "standard"
    """Accuracy in standard deviations from the mean of its tree, or the original's 100·tan(accuracy·π/2)."""
    baseline: bool = True
    """Subtract from each reward the mean of the other episodes of its scenario and update."""
    entropy: float = 0.6
    """Weight of the entropy at the start; it falls to 0 over 70 % of a stage."""
    jitter: float = 0.0
    """Standard deviation of the random shift in time of a scenario in each update, as a share of the budget.

    It makes an agent generalise to times between the scenarios.
    """
    pool: float = 0.0
    """Share of its reward that a sequence exchanges for the mean of all sequences with the same changes.

    The order of changes matters little compared with noise; with 0, recorded accuracies are taken as they
    are.
    """
    episodes_per_update: int = 64
    """Episodes of each scenario in an update."""
    lr: float = 0.01
    lr_falls: Literal["linear", "steps"] = "linear"
    """Decay of the learning rate: linear to 0 at the end of the stage, or by `lr_decay` every `decay_every`
    episodes."""
    lr_decay: float = 0.99
    decay_every: int = 500
    """Episodes between two decays of the learning rate."""
    temperature_decay: float = 0.9
    """Factor on the temperature of a transfer every `temperature_every` episodes, until it is 1."""
    temperature_every: int = 50
    """Episodes between two decays of the temperature: 1,000 becomes 1 after 3,300."""

    def __post_init__(self) -> None:
        names = ("episodes_per_update", "lr", *DECAYS)
        above(0, finite=True, **{name: getattr(self, name) for name in names})
        at_least(0, finite=True, entropy=self.entropy)
        if not (math.inf > self.jitter >= 0 and 0 <= self.pool <= 1):
            raise ConfigError("jitter must be 0 or more, pool from 0 to 1")
        if self.lr_decay > 1 or self.temperature_decay > 1:
            raise ConfigError("lr_decay and temperature_decay must be at most 1")
        if self.baseline and self.episodes_per_update < 2:
            raise ConfigError(
                "a baseline needs other episodes; give 2 or more episodes_per_update, or no baseline"
            )


ORIGINAL = Method(
    network="original",
    reward="tan",
    baseline=False,
    entropy=0.0,
    episodes_per_update=1,
    lr=1e-4,
    lr_falls="steps",
)
"""The method of the original agent."""


@dataclass(frozen=True, slots=True)
class LearnConfig:
    """An agent to learn from recordings, or several, one for each seed."""

    recordings: tuple[Path, ...] = ()
    """Tree recordings, or folders of them."""
    models: tuple[str, ...] = ()
    """Models whose trees are learned from; all by default."""
    recorded_seeds: tuple[int, ...] = ()
    """Seeds of recordings whose trees are learned from; all by default."""
    stages: tuple[str, ...] = ("*",)
    """Trees of each stage; stages are learned one after the other.

    A scenario (`early`), one of a model (`convnet2/early`, or `convnet2-digits/early` if there are trees of
    it on other data), several (`early+late`) or all (`*`).
    """
    episodes: int = 256_000
    """Episodes of each scenario in the first stage."""
    transfer_episodes: int | None = None
    """Episodes of each scenario in later stages, and in the first if it starts from an agent; `episodes` by
    default."""
    temperature: float = 1.0
    """Temperature of the first draws in a stage that starts from learned weights."""
    start: Path | None = None
    """Folder of an agent to start from."""
    seeds: tuple[int, ...] = (0,)
    method: Method = field(default_factory=Method)

    def __post_init__(self) -> None:
        if not self.recordings:
            raise ConfigError("recordings: which? Give folders of tree recordings")
        if not self.stages:
            raise ConfigError("stages: none; give scenarios, or '*' for all at once")
        if not self.seeds:
            raise ConfigError("seeds: none; give one or more")
        if len(set(self.seeds)) < len(self.seeds):
            raise ConfigError("seeds: some are there twice")
        at_least(1, episodes=self.episodes, transfer_episodes=self.transfer_episodes)
        at_least(1, finite=True, temperature=self.temperature)


@dataclass(frozen=True, slots=True)
class LiveConfig:
    """An agent to learn while networks really train."""

    episodes: int = 24
    """Episodes of each scenario."""
    seeds: tuple[int, ...] = (0,)
    """Seed of the agent: exactly one."""
    method: Method = field(default_factory=Method)

    def __post_init__(self) -> None:
        if len(self.seeds) != 1:
            raise ConfigError("seeds: --live learns one agent; give one")
        at_least(1, episodes=self.episodes)
