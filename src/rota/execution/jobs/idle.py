"""Jobs that only wait: for tests, and to measure overhead."""

import json
import time
from collections.abc import Mapping
from typing import Any


class IdleJob:
    """A job that waits so many seconds in each stage, and counts its iterations."""

    def __init__(self, seconds: Mapping[str, Any]) -> None:
        self._seconds = seconds
        self.done = 0

    def load(self, content: bytes) -> None:
        self.done = json.loads(content)["done"]

    def save(self) -> bytes:
        return json.dumps({"done": self.done}).encode()

    def fetch(self) -> None:
        self._wait("fetch_s")

    def compute(self) -> None:
        self._wait("compute_s")

    def exchange(self) -> None:
        self._wait("exchange_s")

    def update(self) -> None:
        self.done += 1

    def tell(self, room: int, at_s: float) -> None:
        """Do nothing: its work depends on neither."""

    @property
    def metric(self) -> float:
        return float(self.done)

    def notes(self) -> list[dict[str, Any]]:
        return []

    def _wait(self, stage: str) -> None:
        if seconds := self._seconds.get(stage):
            time.sleep(seconds)


class IdleJobFactory:
    """A factory of idle jobs; kinds are tables of seconds: `{ fetch_s = 0.01, compute_s = 0.02 }`."""

    def __init__(self, kinds: Mapping[str, Mapping[str, Any]]) -> None:
        self._kinds = kinds

    def open(self, job: int, kind: str, rank: int, size: int, meeting: str) -> IdleJob:
        """Return an idle job of this kind."""
        return IdleJob(self._kinds[kind])


def idle_jobs(settings: Mapping[str, Any], seed: int) -> IdleJobFactory:
    """Return what opens idle jobs; the settings are tables of stages in seconds, by kind."""
    return IdleJobFactory(settings)
