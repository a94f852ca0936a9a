"""A trial of whatever kind with a stopwatch: the same one under every scheduler that is compared.

Named in a configuration as `timed_trial:timed`; this folder must be on the PYTHONPATH of the workers.
"""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rota.core.population.events import Hyper
from rota.execution.trainable import Trainable, factory
from rota.results.population.metrics import ReportedInterval

NAME = "timed_trial:timed"
HERE = Path(__file__).resolve().parent


class Timed:
    """Trains as another does, and writes down when, how much, and how good it was then."""

    def __init__(self, trial: Trainable, log: Path) -> None:
        self._trial, self._log = trial, log
        self._fresh: int | None = None
        self._began_s, self._steps = 0.0, 0

    def begin(self, trial: int) -> None:
        self._trial.begin(trial)
        self._fresh = trial

    def load(self, content: bytes) -> None:
        self._trial.load(content)
        self._fresh = None

    def save(self) -> bytes:
        return self._trial.save()

    def train(self, steps: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        self._began_s, self._steps = time.time(), steps
        self._trial.train(steps, hyper, changes)

    def evaluate(self) -> float:
        metric = self._trial.evaluate()
        part = ReportedInterval(self._began_s, time.time(), self._steps, metric, os.getpid(), self._fresh)
        with (self._log / f"{part.process}.jsonl").open("a") as stream:
            stream.write(f"{json.dumps(part)}\n")
        self._fresh = None
        return metric


def settings(trial: str, training: Mapping[str, Any], log: Path) -> dict[str, Any]:
    """What `[training]` is when a trial is timed."""
    return {"trial": trial, "training": dict(training), "log": str(log.absolute())}


def timed(settings: Mapping[str, Any], seed: int) -> Timed:
    return Timed(factory(settings["trial"])(settings["training"], seed), Path(settings["log"]))


def parts(log: Path) -> list[ReportedInterval]:
    """All that was written down, in the order in which it ended."""
    lines = [line for file in log.iterdir() for line in file.read_text().splitlines()]
    return sorted((ReportedInterval(*json.loads(line)) for line in lines), key=lambda part: part.ended_s)


def environment() -> dict[str, str]:
    """Of processes whose workers are to find this module."""
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path}
