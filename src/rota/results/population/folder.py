"""The folder of a population under one allocation: the only owner of the names of its files.

config.toml               the resolved configuration
seed0/timeline.jsonl      everything that happened with a seed
seed0/3-accuracy.json     how good trial 3 was when
summary.md                averages over the seeds, for people
summary.json              the same and more, and what the run was; written last: with it, a run is complete
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rota.core.errors import InputError
from rota.core.facts import parsed

FORMAT = 1
KIND = "population"
AGAIN = "delete the folder and make the run again"


@dataclass(frozen=True, slots=True)
class PopulationFolder:
    """One run on disk."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def text(self) -> Path:
        return self.path / "summary.md"

    @property
    def begun(self) -> bool:
        """Whether anything of a run is there."""
        return any(file.exists() for file in (self.config, self.text, self.summary))

    def of_seed(self, seed: int) -> Path:
        """Where the logs of its trials are."""
        return self.path / f"seed{seed}"

    def timeline(self, seed: int) -> Path:
        return self.of_seed(seed) / "timeline.jsonl"

    def complete(self, inputs: str | None = None) -> bool:
        """Whether the run is there, made from these inputs if given (their digest)."""
        try:
            found = parsed(self.summary.read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return False
        except OSError as error:
            raise InputError(f"{self.summary}: cannot be read ({error.strerror})") from None
        if not isinstance(found, dict) or found.get("kind") != KIND or found.get("format") != FORMAT:
            return False
        return inputs in (None, found.get("inputs"))

    def clear(self) -> None:
        """Take back the word that the run is complete, and what it left: it is about to be written anew."""
        try:
            self.summary.unlink(missing_ok=True)
            for seed in self.path.glob("seed*"):
                shutil.rmtree(seed)
        except OSError as error:
            reason = error.strerror
            raise InputError(f"{self.path}: cannot be written ({reason}); choose another folder") from None

    def read(self) -> dict[str, Any]:
        """What `summary.json` says."""
        try:
            found: dict[str, Any] = parsed(self.summary.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{self.summary}: cannot be read ({error}); {AGAIN}") from None
        if not isinstance(found, dict):
            raise InputError(f"{self.summary}: not the summary of a population; {AGAIN}")
        return found
