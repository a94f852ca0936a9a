"""Run folders: the only owners of the names of their files.

The folder of a run of jobs has:

config.toml     the resolved configuration
timeline.npz    all events
jobs.csv        one row per job
metrics.json    metrics, and what the run was; written last: with it, a run is complete

The folder of a population has:

config.toml     the resolved configuration
seed0, …        a folder per repetition: its timeline, and the logs of its trials
summary.md      the results as text
summary.json    the results, and what the run was; written last: with it, a run is complete
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rota import __version__
from rota.core.errors import InputError
from rota.core.files import parsed, read_json, write_file

AGAIN = "delete the folder and make the run again"


@dataclass(frozen=True, slots=True)
class ResultFolder:
    """A run on disk, of any kind."""

    path: Path
    HEAD: ClassVar[str]
    """Name of the JSON file that is written last."""
    KIND: ClassVar[str | None] = None
    """Entry `kind` of that file."""
    FORMATS: ClassVar[tuple[int, ...]]
    """Formats that this version reads; it writes the last of them."""
    NEEDS: ClassVar[tuple[str, ...]] = ()
    """Names of the other files without which a run is not complete."""

    @property
    def config(self) -> Path:
        """The resolved configuration."""
        return self.path / "config.toml"

    @property
    def head(self) -> Path:
        """The file that is written last."""
        return self.path / self.HEAD

    @property
    def begun(self) -> bool:
        """Whether any file of a run exists."""
        try:
            return any((self.path / name).exists() for name in (self.HEAD, self.config.name, *self.NEEDS))
        except OSError as error:
            raise self._error("read", error) from None

    def complete(self, inputs: str | None = None) -> bool:
        """Whether there is a complete run, made from inputs with this digest if one is given.

        A run that is damaged, or of another version, is not complete.
        """
        try:
            if not all((self.path / name).exists() for name in (self.HEAD, *self.NEEDS)):
                return False
            found = parsed(self.head.read_text("utf-8"))
        except OSError as error:
            raise self._error("read", error) from None
        except ValueError:
            return False
        return (
            self._is_head(found) and found.get("format") in self.FORMATS and inputs in (None, found["inputs"])
        )

    def read_head(self) -> dict[str, Any]:
        """Return the content of the file that is written last; an InputError if it is not that of a run."""
        if not os.path.lexists(self.head):
            raise InputError(f"{self.path}: not a complete run, it has no {self.HEAD}; make it again")
        found: dict[str, Any] = read_json(self.head, AGAIN)
        if not self._is_head(found):
            raise InputError(f"{self.head}: not that of a run; choose another folder, or {AGAIN}")
        if found.get("format") not in self.FORMATS:
            form, reads = found.get("format"), self.FORMATS[-1]
            raise InputError(f"{self.head}: format {form!r}, this version reads {reads}; {AGAIN}")
        return found

    def write_head(
        self, results: Mapping[str, Any], *, inputs: str, command: str, parameters: Any = None
    ) -> None:
        """Write the file with which the run is complete: what it was made from and by, and its results."""
        about = {"format": self.FORMATS[-1], **({"kind": self.KIND} if self.KIND else {})}
        about |= {"rota": __version__, "inputs": inputs, "command": command}
        about |= {"parameters": parameters} if parameters else {}
        self.write(self.head, json.dumps({**about, **results}, indent=2, allow_nan=False) + "\n")

    def write(self, file: Path, text: str) -> None:
        """Write one of its files atomically."""
        write_file(file, text)

    def check_replaceable(self, inputs: str, command: str) -> None:
        """Raise InputError if there is a run that another command made from other inputs, or another file.

        The result of the same command may be replaced: its trace, or rota, has changed.
        """
        try:
            found = parsed(self.head.read_text("utf-8"))
        except (OSError, ValueError):
            return
        if not self._is_head(found):
            raise InputError(f"{self.head}: not that of a run; choose another --out, or add --replace")
        if found["inputs"] != inputs and found.get("command", command) != command:
            made_by = f"made by: {found['command']}"
            raise InputError(
                f"{self.path}: holds another run, {made_by}; choose another --out, or add --replace"
            )

    def reopen(self) -> None:
        """Make the run incomplete: it is about to be written again."""
        try:
            self.head.unlink(missing_ok=True)
        except OSError as error:
            raise self._error("written", error) from None

    def _is_head(self, found: Any) -> bool:
        return isinstance(found, dict) and "inputs" in found and found.get("kind") == self.KIND

    def _error(self, done: str, error: OSError) -> InputError:
        return InputError(f"{self.path}: cannot be {done} ({error.strerror}); choose another folder")


@dataclass(frozen=True, slots=True)
class RunFolder(ResultFolder):
    """The folder of a run of jobs."""

    HEAD = "metrics.json"
    FORMATS = (1, 2)
    NEEDS = ("timeline.npz", "jobs.csv", "config.toml")

    @property
    def timeline(self) -> Path:
        """All events."""
        return self.path / "timeline.npz"

    @property
    def jobs(self) -> Path:
        """A table with a row per job."""
        return self.path / "jobs.csv"


@dataclass(frozen=True, slots=True)
class PopulationFolder(ResultFolder):
    """The folder of a run of a population."""

    HEAD = "summary.json"
    KIND = "population"
    FORMATS = (1,)

    @property
    def text(self) -> Path:
        """The results as Markdown."""
        return self.path / "summary.md"

    def of_seed(self, seed: int) -> Path:
        """Return the folder of a seed: its timeline, and the logs of its trials."""
        return self.path / f"seed{seed}"

    def timeline(self, seed: int) -> Path:
        """Return the file with all events of a seed."""
        return self.of_seed(seed) / "timeline.jsonl"

    def clear(self) -> None:
        """Delete the summary and the files of all seeds: the run is about to be written again."""
        self.reopen()
        try:
            for seed in self.path.glob("seed*"):
                shutil.rmtree(seed)
        except OSError as error:
            raise self._error("written", error) from None


def run_folders(path: Path) -> Iterator[RunFolder]:
    """Yield all runs in a folder by name: the folder itself if it is a run, else those below it."""
    if RunFolder(path).begun:
        yield RunFolder(path)
    elif path.is_dir():
        for child in sorted(path.iterdir()):
            if child.is_dir():
                yield from run_folders(child)


def complete_run(path: Path) -> RunFolder | PopulationFolder | None:
    """Return the complete run in a folder, of whichever kind; None if there is none."""
    kinds: tuple[type[PopulationFolder] | type[RunFolder], ...] = (PopulationFolder, RunFolder)
    return next((found for kind in kinds if (found := kind(path)).complete()), None)
