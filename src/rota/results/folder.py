"""The folder of a run: the only owner of the names of its files.

config.toml     the resolved configuration
timeline.npz    everything that happened
jobs.csv        one row per job
metrics.json    the figures of merit and what the run was; written last: with it, a run is complete
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rota.core.errors import InputError
from rota.core.files import parsed

FORMAT = 2
READABLE = (1, FORMAT)
AGAIN = "delete the folder and make the run again"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run on disk."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def timeline(self) -> Path:
        return self.path / "timeline.npz"

    @property
    def jobs(self) -> Path:
        return self.path / "jobs.csv"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.json"

    @property
    def begun(self) -> bool:
        """Whether anything of a run is there."""
        try:
            return any(file.exists() for file in (self.config, self.timeline, self.jobs, self.metrics))
        except OSError as error:
            raise InputError(
                f"{self.path}: cannot be read ({error.strerror}); choose another folder"
            ) from None

    def complete(self, inputs: str | None = None) -> bool:
        """Whether the run is there, made from these inputs if given (their digest).

        One that is damaged or of another version is not; what is not a run at all is an error.
        """
        try:
            if not all(file.exists() for file in (self.metrics, self.timeline, self.jobs, self.config)):
                return False
            found = parsed(self.metrics.read_text(encoding="utf-8"))
        except OSError as error:
            reason = error.strerror
            raise InputError(f"{self.path}: cannot be written ({reason}); choose another folder") from None
        except ValueError:
            return False
        if not isinstance(found, dict) or "inputs" not in found:
            raise InputError(f"{self.metrics}: not the metrics of a run; choose another folder")
        return found.get("format") in READABLE and inputs in (None, found["inputs"])

    def read_metrics(self) -> dict[str, Any]:
        """The contents of `metrics.json`, once it is sure that they are those of a run."""
        try:
            found = parsed(self.metrics.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(
                f"{self.path}: not a complete run, it has no {self.metrics.name}; make it again"
            ) from None
        except (OSError, ValueError) as error:
            raise InputError(f"{self.metrics}: cannot be read ({error}); {AGAIN}") from None
        if not isinstance(found, dict) or "inputs" not in found or "format" not in found:
            raise InputError(f"{self.metrics}: not the metrics of a run; choose another folder, or {AGAIN}")
        if found["format"] not in READABLE:
            raise InputError(
                f"{self.metrics}: format {found['format']!r}, this version reads {FORMAT}; {AGAIN}"
            )
        return found

    def reopen(self) -> None:
        """Take back the word that the run in it is complete: it is about to be written anew."""
        try:
            self.metrics.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(
                f"{self.path}: cannot be written ({error.strerror}); choose another folder"
            ) from None


def run_folders(path: Path) -> Iterator[RunFolder]:
    """All runs in a folder, by name: the folder itself if it is one, else those below it."""
    if RunFolder(path).begun:
        yield RunFolder(path)
    elif path.is_dir():
        for child in sorted(path.iterdir()):
            if child.is_dir():
                yield from run_folders(child)
