"""The toy problem of the paper on population-based training: the truth can only be climbed indirectly."""

from rota.core.population.decisions import Hyper

START = (0.9, 0.9)
TOP = 1.2


class Toy:
    """A trial has two weights θ and is as good as 1.2 − θ₀² − θ₁².

    It climbs 1.2 − h₀θ₀² − h₁θ₁² in place of that, by gradient ascent: a step multiplies each weight by
    1 − 2 · rate · h. Its hyper-parameters `h0` and `h1` are what it sees of the truth: with one of them at 0
    a weight stays where it was.
    """

    def __init__(self, rate: float = 0.02, step_s: float = 1.0) -> None:
        self._rate, self._step_s = rate, step_s
        self.theta: dict[int, tuple[float, float]] = {}
        self._sees: dict[int, tuple[float, float]] = {}

    def kind(self, hyper: Hyper, changes: tuple[str, ...]) -> str:
        return "toy"

    def step_s(self, kind: str) -> float:
        return self._step_s

    def size_mb(self, kind: str) -> float:
        return 0.0

    def begin(self, trial: int, hyper: Hyper) -> None:
        self.theta[trial] = START
        self._sees[trial] = hyper["h0"], hyper["h1"]

    def train(self, trial: int, steps: int) -> float:
        (zero, one), (sees_zero, sees_one) = self.theta[trial], self._sees[trial]
        zero *= (1.0 - 2.0 * self._rate * sees_zero) ** steps
        one *= (1.0 - 2.0 * self._rate * sees_one) ** steps
        self.theta[trial] = zero, one
        return TOP - (zero * zero + one * one)

    def clone(self, trial: int, donor: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        self.theta[trial] = self.theta[donor]
        self._sees[trial] = hyper["h0"], hyper["h1"]
