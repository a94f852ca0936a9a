"""How good each trial was when: a file of JSON Lines per trial, as the original systems wrote them."""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from rota.core.atomic import written
from rota.core.errors import InputError
from rota.core.population.events import Event, Reported
from rota.results.population.folder import AGAIN


class Logged(NamedTuple):
    """A line of such a file."""

    iteration: int
    """Steps that the trial had had."""
    accuracy: float


def logs_of(events: Iterable[Event]) -> dict[int, list[Logged]]:
    """Trial → how good it was when it reported; a clone goes on counting its own steps."""
    steps: dict[int, int] = {}
    logs: dict[int, list[Logged]] = {}
    for event in events:
        if isinstance(event, Reported):
            steps[event.trial] = steps.get(event.trial, 0) + event.steps
            if not math.isnan(event.metric):
                logs.setdefault(event.trial, []).append(Logged(steps[event.trial], event.metric))
    return dict(sorted(logs.items()))


def write_logs(folder: Path, logs: Mapping[int, Iterable[Logged]]) -> None:
    for trial, lines in logs.items():
        with written(log_file(folder, trial)) as stream:
            for line in lines:
                stream.write(f"{json.dumps(line._asdict())}\n".encode())


def read_log(folder: Path, trial: int) -> list[Logged]:
    """The log of a trial."""
    path = log_file(folder, trial)
    try:
        return [Logged(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path}: not the log of a trial ({error}); {AGAIN}") from None


def log_file(folder: Path, trial: int) -> Path:
    return folder / f"{trial}-accuracy.json"
