"""How good trials become: what a rehearsal has in place of training."""

from math import nan
from typing import Protocol

from rota.core.population.decisions import Hyper
from rota.core.population.view import Work


class Landscape(Work, Protocol):
    """What trials cost, and how good they become."""

    def begin(self, trial: int, hyper: Hyper) -> None:
        """A trial is there."""

    def train(self, trial: int, steps: int) -> float:
        """How good it is after so many more steps."""

    def clone(self, trial: int, donor: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        """A trial goes on as another, with these hyper-parameters and this network."""


class Equal:
    """Trials that cost the same and of which nothing is measured."""

    def __init__(self, step_s: float = 1.0, size_mb: float = 0.0) -> None:
        self._step_s, self._size_mb = step_s, size_mb

    def kind(self, hyper: Hyper, changes: tuple[str, ...]) -> str:
        return "equal"

    def step_s(self, kind: str) -> float:
        return self._step_s

    def size_mb(self, kind: str) -> float:
        return self._size_mb

    def begin(self, trial: int, hyper: Hyper) -> None:
        pass

    def train(self, trial: int, steps: int) -> float:
        return nan

    def clone(self, trial: int, donor: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        pass
