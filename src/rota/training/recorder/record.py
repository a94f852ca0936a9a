"""Record everything that a configuration asks for, what takes least preparation first."""

from collections.abc import Iterator
from pathlib import Path

from rota.training.recorder.curves import CurvesRecorder
from rota.training.recorder.experiment import RecordConfig
from rota.training.recorder.profiles import ProfilesRecorder
from rota.training.recorder.progress import Progress
from rota.training.recorder.trees import TreesRecorder


def record(config: RecordConfig, out: Path, workers: int, command: str, progress: Progress) -> Iterator[Path]:
    """Make what is missing; gives the folder of each recording when it is there."""
    for profiles in config.profiles:
        yield from ProfilesRecorder(out, profiles, command).record(progress)
    for curves in config.curves:
        yield from CurvesRecorder(out, curves, workers, command).record(progress)
    for trees in config.trees:
        yield from TreesRecorder(out, trees, workers, command).record(progress)
