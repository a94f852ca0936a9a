"""Trials that only wait: for tests, and to measure overhead."""

import json
import time
from collections.abc import Mapping
from typing import Any

from rota.core.population.events import Hyper

FIRST = 2.0**-20
"""Difference between the initial metrics of two successive trials."""


class Idle:
    """A trial that waits `step_s` seconds a step. Each step adds its hyper-parameter `lr` to its metric."""

    def __init__(self, step_s: float) -> None:
        self._step_s = step_s
        self._had = 0.0

    def begin(self, trial: int) -> None:
        self._had = trial * FIRST

    def load(self, content: bytes) -> None:
        self._had = json.loads(content)["had"]

    def save(self) -> bytes:
        return json.dumps({"had": self._had}).encode()

    def train(self, steps: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        if self._step_s:
            time.sleep(steps * self._step_s)
        self._had += steps * (float(hyper.get("lr", 1.0)) + len(changes))

    def evaluate(self) -> float:
        return self._had


def idle(settings: Mapping[str, Any], seed: int) -> Idle:
    """Return an idle trial; the setting `step_s` is the seconds of a step (0)."""
    return Idle(float(settings.get("step_s", 0.0)))
