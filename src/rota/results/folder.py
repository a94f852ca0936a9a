"""Run folders: the only owners of the names of their files.

The folder of a run of jobs has:

config.toml     the resolved configuration
timeline.npz    all events
jobs.csv        one row per job
metrics.json    metrics, and what the run was; written last: with it, a run is complete
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


def read_json(path: Path, fix: str = AGAIN) -> Any:
    """Return the content of a JSON file; an InputError that ends with `fix` if it cannot be read."""
    try:
        return parsed(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); {fix}") from None


@dataclass(frozen=True, slots=True)
class ResultFolder:
    """A run on disk, of any kind."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of a complete run, the one that is written last first."""
        return (self.config,)

    @property
    def begun(self) -> bool:
        """Whether any file of a run exists."""
        try:
            return any(file.exists() for file in self.files)
        except OSError as error:
            raise self._error("read", error) from None

    def reopen(self) -> None:
        """Make the run incomplete: it is about to be written again."""
        try:
            self.files[0].unlink(missing_ok=True)
        except OSError as error:
            raise self._error("written", error) from None

    def _error(self, done: str, error: OSError) -> InputError:
        return InputError(f"{self.path}: cannot be {done} ({error.strerror}); choose another folder")


@dataclass(frozen=True, slots=True)
class RunFolder(ResultFolder):
    """The folder of a run of jobs."""

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
    def files(self) -> tuple[Path, ...]:
        return self.metrics, self.timeline, self.jobs, self.config

    def complete(self, inputs: str | None = None) -> bool:
        """Whether there is a complete run, made from inputs with this digest if one is given.

        A run that is damaged or of another version is not complete. Raises an error if it is no run at all.
        """
        try:
            if not all(file.exists() for file in self.files):
                return False
            found = parsed(self.metrics.read_text(encoding="utf-8"))
        except OSError as error:
            raise self._error("written", error) from None
        except ValueError:
            return False
        if not isinstance(found, dict) or "inputs" not in found:
            raise InputError(f"{self.metrics}: not the metrics of a run; choose another folder")
        return found.get("format") in READABLE and inputs in (None, found["inputs"])

    def read_metrics(self) -> dict[str, Any]:
        """Return the content of `metrics.json`; an error if it is not that of a run."""
        try:
            found = parsed(self.metrics.read_text("utf-8"))
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


def run_folders(path: Path) -> Iterator[RunFolder]:
    """Yield all runs in a folder by name: the folder itself if it is a run, else those below it."""
    if RunFolder(path).begun:
        yield RunFolder(path)
    elif path.is_dir():
        for child in sorted(path.iterdir()):
            if child.is_dir():
                yield from run_folders(child)
