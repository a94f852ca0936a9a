"""How good each trial was when: a file of JSON Lines per trial, as the original systems wrote them."""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from rota.config.bind import facts
from rota.core.errors import InputError
from rota.core.facts import parsed
from rota.core.population.events import Event, Reported
from rota.results.population.folder import AGAIN


class Logged(NamedTuple):
    """A line of such a file."""

    iteration: int
    """Steps that the trial had had."""
    accuracy: float


class Logs:
    """How good trials were when, told event by event; a clone goes on counting its own steps."""

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}
        self._logs: dict[int, list[Logged]] = {}

    def see(self, event: Event) -> None:
        if isinstance(event, Reported):
            steps = self._steps[event.trial] = self._steps.get(event.trial, 0) + event.steps
            if not math.isnan(event.metric):
                self._logs.setdefault(event.trial, []).append(Logged(steps, event.metric))

    def by_trial(self) -> dict[int, list[Logged]]:
        """Of those that were measured, by their number."""
        return dict(sorted(self._logs.items()))


def write_logs(folder: Path, logs: Mapping[int, Iterable[Logged]]) -> None:
    """Write a file per trial, of which there may be thousands; none is read before the run is complete."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for trial, lines in logs.items():
            text = "".join(f"{json.dumps(line._asdict())}\n" for line in lines)
            log_file(folder, trial).write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); choose another folder") from None


def read_log(folder: Path, trial: int) -> list[Logged]:
    """The log of a trial."""
    path = log_file(folder, trial)
    try:
        found = [parsed(line) for line in path.read_text("utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not the log of a trial ({error}); {AGAIN}") from None
    return [facts(Logged, line, path, AGAIN) for line in found]


def log_file(folder: Path, trial: int) -> Path:
    return folder / f"{trial}-accuracy.json"
