"""What the journal of a sweep says: trials, from the entries one by one."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rota.core.errors import ConfigError
from rota.execution.journal import Entry
from rota.sweeps.asha import ASHA
from rota.sweeps.plain import from_plain
from rota.sweeps.trial import Status, Trial

BEGAN, DRAWN, TRAIN, STARTED, LOGGED, ENDED = "began", "drawn", "train", "started", "logged", "ended"
JOURNAL = "journal.sqlite"


def folder_of(local_dir: Path, name: str) -> Path:
    """Where an experiment is. Its name must be the name of a folder, and nothing more."""
    fine = name[:1].isalnum() and all(letter.isalnum() or letter in "._+=@ -" for letter in name)
    if not fine or len(name) > 100 or name != name.strip() or ".." in name:
        raise ConfigError(
            f"experiment {name!r}: give a name of at most 100 letters, digits, '-', '_' and '.', no '..', "
            "a letter or digit first"
        )
    return local_dir / name


class Record:
    """The trials of a sweep as far as its journal goes."""

    def __init__(self, things: Sequence[Any] | None = None) -> None:
        self.trials: list[Trial] = []
        self.metric: str | None = None
        self.mode: str | None = None
        self._things = things
        self._copies: Counter[str] = Counter()

    def apply(self, entry: Entry) -> None:
        """Take in one entry."""
        getattr(self, f"_{entry.kind}")(entry.at_s, entry.body)

    def _began(self, at_s: float, body: dict[str, Any]) -> None:
        self.metric, self.mode = body["metric"], body["mode"]

    def _drawn(self, at_s: float, body: dict[str, Any]) -> None:
        trial = Trial(from_plain(body["cfg"], self._things), status=Status.SCHEDULED)
        self._copies[trial.trial_id] += 1
        trial.copy = self._copies[trial.trial_id]
        self.trials.append(trial)

    def _started(self, at_s: float, body: dict[str, Any]) -> None:
        """What it had logged when it was started before belongs to a training that is lost."""
        trial = self.trials[body["trial"]]
        trial.status, trial.start_time = Status.RUNNING, datetime.fromtimestamp(at_s)
        trial.metrics.clear()

    def _train(self, at_s: float, body: dict[str, Any]) -> None:
        """The digest of the train function: for whoever checks it."""

    def _logged(self, at_s: float, body: dict[str, Any]) -> None:
        metrics = self.trials[body["trial"]].metrics
        for name, value in body["metrics"].items():
            metrics.setdefault(name, {})[body["iteration"]] = value

    def _ended(self, at_s: float, body: dict[str, Any]) -> None:
        trial = self.trials[body["trial"]]
        trial.status, trial.end_time = Status(body["status"]), datetime.fromtimestamp(at_s)
        trial.failure = body["failure"]


def about(asha: ASHA | None) -> dict[str, Any]:
    """What is known of a sweep before there are trials."""
    return {"metric": asha and asha.metric, "mode": asha and asha.mode}
