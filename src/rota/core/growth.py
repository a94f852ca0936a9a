"""The base class of growth policies that are written outside of rota."""

from abc import ABC, abstractmethod

from rota.core.change import Change
from rota.core.errors import InputError
from rota.core.outside import Seam
from rota.core.sight import Sight


class Growth(ABC):
    """A growth policy: says how a network changes while it trains.

    A subclass writes `choose(observation)`. Fields of a dataclass are its options. It is called by its
    `name`, a text in the class, or else by the name of its class: `WhileEarly` is `while-early`.

    >>> from dataclasses import dataclass
    >>> import rota
    >>> @dataclass(frozen=True)
    ... class WhileEarly(rota.Growth):
    ...     least: float = 0.5
    ...
    ...     def choose(self, observation):
    ...         return "deepen 0" if observation.left > self.least else "nothing"
    >>> from rota.core.change import NOTHING, Change
    >>> from rota.core.sight import Sight
    >>> from rota.core.structure import Structure
    >>> early = Sight(Structure((), ()), (), 8.0, 10.0, (Change("deepen", 0), NOTHING))
    >>> WhileEarly().choose(early), WhileEarly(least=0.9).choose(early)
    ('deepen 0', 'nothing')
    """

    @abstractmethod
    def choose(self, observation: Sight) -> Change | str:
        """Return what is done now: one of `observation.actions`, or how it is written, as `deepen 1`.

        `observation.left` is the time that is left as a share of the budget, `observation.left_s` and
        `observation.budget_s` are in seconds; `observation.structure` is the network, `observation.blocks`
        has the layers of each block that can grow, and `observation.made` what was decided before, as
        positions in the actions. The same must be returned for the same observation. If the network cannot
        be changed so, nothing is.
        """

    def probabilities(self, observation: Sight) -> list[float]:
        """Return 1 for what `choose` returns, and 0 for all else."""
        chosen = self.choose(observation)
        change = Change.parse(chosen) if isinstance(chosen, str) else chosen
        if change not in observation.actions:
            may = ", ".join(map(str, observation.actions))
            raise InputError(f"{type(self).__name__}: chose {change}, which is not offered; choose of {may}")
        return [float(action == change) for action in observation.actions]


SEAM = Seam("growth policy", "rota.Growth", {"choose": ("observation",)}, ("probabilities",))
"""What a class must have to be a growth policy."""
