"""Recorder of everything that a configuration asks for."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rota.core.errors import ConfigError
from rota.training.recorder.curves import CurvesConfig, CurvesRecorder
from rota.training.recorder.growth import GrowthConfig, GrowthRecorder
from rota.training.recorder.partial import RecordingProgress
from rota.training.recorder.profile_config import ProfilesConfig
from rota.training.recorder.profiles import ProfilesRecorder
from rota.training.recorder.trees import TreesConfig, TreesRecorder


@dataclass(frozen=True, slots=True)
class RecordConfig:
    """The recordings to make."""

    profiles: tuple[ProfilesConfig, ...] = ()
    """Profiles: the time of iterations and their stages."""
    curves: tuple[CurvesConfig, ...] = ()
    """Curves: one network at each point of a grid of hyper-parameters."""
    trees: tuple[TreesConfig, ...] = ()
    """Trees: every sequence of changes of a network."""
    growth: tuple[GrowthConfig, ...] = ()
    """Growth trees: intervals of training, with a choice of changes at each boundary between two."""

    def __post_init__(self) -> None:
        if not (self.profiles or self.curves or self.trees or self.growth):
            raise ConfigError("nothing to record; give [[growth]], [[trees]], [[curves]] or [[profiles]]")
        names = [growth.name for growth in self.growth]
        if len(set(names)) < len(names):
            raise ConfigError(f"growth: two are called {max(names, key=names.count)!r}; give one a name")


def record(
    config: RecordConfig,
    out: Path,
    workers: int,
    command: str,
    progress: RecordingProgress,
    *,
    time_again: bool = False,
) -> Iterator[Path]:
    """Record what is missing; yield the folder of each recording when it is complete.

    With `time_again`, train nothing; measure the step times of the growth trees that are there again.
    """
    growth = GrowthRecorder(out, config.growth, workers, command)
    if time_again:
        yield from growth.time_again(progress)
        return
    for profiles in config.profiles:
        yield from ProfilesRecorder(out, profiles, command).record(progress)
    for curves in config.curves:
        yield from CurvesRecorder(out, curves, command, workers).record(progress)
    for trees in config.trees:
        yield from TreesRecorder(out, trees, workers, command).record(progress)
    yield from growth.record(progress)
