"""What a configuration may say about trials that are rehearsed: what they cost, how good they become."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path

from rota.core.errors import ConfigError, unknown
from rota.core.population.decisions import Hyper
from rota.core.population.fleet import Fleet
from rota.policies.trials import Choices, TrialsConfig
from rota.recordings.curve import Curves, read_curves
from rota.recordings.profile import Profiles, read_profiles
from rota.replay.population.besides import Besides
from rota.replay.population.landscape import Equal, Landscape
from rota.replay.population.predicted import Foretold, Kind
from rota.replay.population.recorded import BATCH, Liberties, Recorded


@dataclass(frozen=True, slots=True)
class PopulationConfig(TrialsConfig):
    """Which trials, how they are trained, and what comes of it."""

    step_s: float = 1.0
    """Seconds that a step takes on a slot of speed 1, unless curves say so."""
    checkpoint_mb: float = 0.0
    """What has to be moved when a trial changes its node."""
    curves: Path | None = None
    """The folder of a recording of curves, which say what trials cost and how good they become; it starts at
    the folder of the configuration file. Without it trials cost the same, and nothing is measured."""
    profiles: Path | None = None
    """The folder of a recording of profiles, with curves: speeds of slots whose `device` was profiled are
    predicted from it, where the slot does not give them: for each batch size that trials begin with, that was
    recorded, or that `options.pbt.space` lists."""
    parameters: dict[str, int] = field(default_factory=dict)
    """Model → how many parameters it has, for predicting those that were not profiled from others."""
    metric: str = ""
    """Of the curves: how good a trial is; accuracy, if that was recorded. More is better: a loss counts as a
    negative number, in targets and for evolution, too."""
    growth: float = 1.25
    """How many times as long a step takes, and as large a checkpoint is, with each change of a network."""
    gain: float = 0.0
    """What each change of a network adds to the metric."""

    def __post_init__(self) -> None:
        TrialsConfig.__post_init__(self)
        if not 0.0 < self.step_s < inf:
            raise ConfigError(f"step_s is {self.step_s:g}; it must be above 0")
        if not 0.0 <= self.checkpoint_mb < inf:
            raise ConfigError(f"checkpoint_mb is {self.checkpoint_mb:g}; it must be 0 or more")
        if self.profiles is not None and self.curves is None:
            raise ConfigError("profiles: what trials are is said by curves; give those, too, or leave it out")
        if any(count < 1 for count in self.parameters.values()):
            raise ConfigError("parameters: a network has 1 or more")
        if self.metric.endswith("loss") and 0.0 < self.target < inf:
            raise ConfigError(
                f"target is {self.target:g}, but {self.metric} is a loss, which counts as a negative number, "
                f"so that more is better; give one below 0, like -{self.target:g}"
            )
        self._liberties()

    def landscape(self) -> Landscape:
        """Fresh: a landscape remembers where its trials stand."""
        if self.curves is None:
            return Equal(self.step_s, self.checkpoint_mb)
        return Recorded(_recording(self.curves), self._liberties())

    def besides(self) -> Besides:
        """What a report costs besides its steps, as far as that was recorded."""
        return Besides.recorded(_recording(self.curves).details if self.curves else {})

    def measured_from(self) -> int:
        """Where the curves begin."""
        settings = _recording(self.curves).settings.values() if self.curves else ()
        return min((int(setting.steps[0]) for setting in settings), default=0)

    def foretold(self, fleet: Fleet, hypers: Sequence[Hyper], batch_sizes: Sequence[float] = ()) -> Fleet:
        """The slots, with speeds for each kind of trial as far as profiles tell.

        Kinds are those that trials begin with, that were recorded, and those of further batch sizes.
        """
        if self.profiles is None or self.curves is None:
            return fleet
        curves, landscape = _recording(self.curves), self.landscape()
        device = next(iter(curves.settings.values())).device
        all_there_are = (*hypers, *curves.tried, *({BATCH: size} for size in batch_sizes))
        batches = {landscape.kind(hyper, ()): int(hyper.get(BATCH, 0)) for hyper in all_there_are}
        kinds = {name: Kind(curves.model, batch) for name, batch in batches.items() if batch}
        return Foretold.of(_profiles(self.profiles), self.parameters, device).fill_in(fleet, kinds)

    def choices(self) -> Choices:
        """What is said to begin with; else what was recorded."""
        if self.curves is None:
            return dict(self.start)
        curves = _recording(self.curves)
        for name in self.start:
            if name not in curves.hyper:
                raise ConfigError(f"start: {unknown('hyper-parameter', name, curves.hyper)}")
        recorded = {name: sorted({hyper[name] for hyper in curves.tried}, key=str) for name in curves.hyper}
        return {**recorded, **self.start}

    def _liberties(self) -> Liberties:
        return Liberties(self.metric, self.checkpoint_mb, self.growth, self.gain)


@cache
def _profiles(folder: Path) -> Profiles:
    return read_profiles(folder)


@cache
def _recording(folder: Path) -> Curves:
    return read_curves(folder)
