"""What a configuration says about machines, whatever they are: the seam where an engine is added."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rota.core.population.fleet import Fleet
from rota.execution.folder import Books
from rota.execution.worker import Hello
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
    mode: str = "max"
    """Whether more is better, or less: "min"."""

    def hello(self) -> Hello:
        """What workers are told first."""
        return Hello(str(self.books.checkpoints.folder.absolute()), self.seed, self.settings, mode=self.mode)


class Engine(Protocol):
    """A section of the configuration: `[local]` …"""

    def fleet(self) -> Fleet:
        """The slots, which must be the same when a run is resumed."""

    def check(self) -> None:
        """Raise ConfigError, before a run begins, if it asks for what is known not to be there."""

    def workers(self, fleet: Fleet, assignment: Assignment) -> Workers:
        """One worker per slot, none of them started yet."""
