"""Recorder of everything that a configuration asks for."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rota.core.errors import ConfigError
from rota.training.recorder.curves import CurvesConfig, CurvesRecorder
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

    def __post_init__(self) -> None:
        if not (self.profiles or self.curves or self.trees):
            raise ConfigError("nothing to record; give [[trees]], [[curves]] or [[profiles]]")


def record(
    config: RecordConfig, out: Path, workers: int, command: str, progress: RecordingProgress
) -> Iterator[Path]:
    """Record what is missing; yield the folder of each recording when it is complete."""
    for profiles in config.profiles:
        yield from ProfilesRecorder(out, profiles, command).record(progress)
    for curves in config.curves:
        yield from CurvesRecorder(out, curves, command, workers).record(progress)
    for trees in config.trees:
        yield from TreesRecorder(out, trees, workers, command).record(progress)
