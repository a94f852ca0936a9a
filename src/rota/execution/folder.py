"""The folder of a run for real: the only owner of the names in it.

runs/0/journal.sqlite   what happened and what was decided, with seed 0; with it a run can be resumed
runs/0/checkpoints/     of its trials
runs/0/logs/            what its workers printed
runs/0/ray              while it runs on a Ray cluster of its own: points at the folder of that
runs/0/spool.jsonl      what of the timeline is too much for memory
replay/                 the best trial, trained again alone
config.toml             what was run
result.json             what `rota run --json` prints, once a run is over

What a rehearsal writes (`seed0/timeline.jsonl`, `summary.json` …) is beside it.
"""

from dataclasses import dataclass
from pathlib import Path

from rota.core.errors import InputError
from rota.execution.checkpoints import Checkpoints


@dataclass(frozen=True, slots=True)
class Books:
    """Of one repetition."""

    path: Path

    @property
    def journal(self) -> Path:
        return self.path / "journal.sqlite"

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.path / "checkpoints")

    @property
    def spool(self) -> Path:
        return self.path / "spool.jsonl"

    @property
    def ray(self) -> Path:
        return self.path / "ray"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def make(self) -> None:
        """For the eyes of their owner only."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.logs.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be made ({error.strerror}); choose another") from None
        self.checkpoints.make_folder()


@dataclass(frozen=True, slots=True)
class RealFolder:
    """A run on disk, with all its repetitions."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    def make(self) -> None:
        """For the eyes of its owner only."""
        try:
            for folder in (self.path, self.path / "runs"):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be made ({error.strerror}); choose another") from None

    def books(self, seed: int) -> Books:
        return Books(self.path / "runs" / str(seed))

    @property
    def again(self) -> Books:
        """Of the best trial, trained again alone."""
        return Books(self.path / "replay")

    def begun(self) -> list[int]:
        """The seeds of which there is a journal."""
        files = self.path.glob("runs/*/journal.sqlite")
        return sorted(int(file.parent.name) for file in files if file.parent.name.isdecimal())
