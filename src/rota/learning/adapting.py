"""The adaptation agent as the growth policy of a population."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rota.core.errors import ConfigError, InputError
from rota.core.files import located
from rota.core.network import Observation
from rota.learning.agent import Agent, read_agent


@dataclass(frozen=True)
class AgentGrowth:
    """Let an agent of `rota learn` decide; it sees one trial, as in `rota train`."""

    agent: Path = Path()
    """Folder of the agent."""

    def __post_init__(self) -> None:
        if self.agent == Path():
            raise ConfigError("agent: none; give the folder of an agent that rota learn wrote")
        _read(self.agent)

    def probabilities(self, observation: Observation) -> list[float]:
        found = _read(self.agent)
        if not found.decides_between(len(observation.actions)):
            raise InputError(
                f"{self.agent}: decides between {found.options.get('actions')} actions, and here are "
                f"{len(observation.actions)}; learn one with the structural network"
            )
        return found.probabilities(observation)


@cache
def _read(folder: Path) -> Agent:
    return read_agent(located(folder))
