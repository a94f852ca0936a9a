"""What a configuration says about machines, whatever they are: the seam where an engine is added."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rota.core.population.fleet import Fleet
from rota.execution.folder import Books
from rota.execution.workers import Workers


@dataclass(frozen=True, slots=True)
class Assignment:
    """What workers are for."""

    trial: str
    """`module:function`, which makes what is trained."""
    settings: Mapping[str, Any]
    """That it is given."""
    seed: int
    books: Books
    """Where checkpoints and logs are kept."""


class Engine(Protocol):
    """A section of the configuration: `[local]` …"""

    def fleet(self) -> Fleet:
        """The slots, which must be the same when a run is resumed."""

    def workers(self, fleet: Fleet, assignment: Assignment) -> Workers:
        """One worker per slot, none of them started yet."""
