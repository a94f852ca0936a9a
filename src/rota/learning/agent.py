"""Agents that decide how networks grow."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rota.config.bind import facts
from rota.core.errors import InputError
from rota.core.files import located
from rota.core.network import Observation
from rota.learning.networks.registry import build, features_of
from rota.policies.agents import (
    FACTS,
    KINDS,
    AgentFacts,
    Arrays,
    another_version,
    check_features,
    read_arrays,
    read_facts,
    write_agent_file,
    wrong_weights,
)
from rota.recordings.folder import Provenance

if TYPE_CHECKING:
    import pandas as pd


KIND = "adaptation"
WEIGHTS_PREFIX, ADAM = "weights/", "adam/"


def state_of(network: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, NDArray[Any]]:
    """Return the weights of a network and the state of its Adam optimizer."""
    weights = {f"{WEIGHTS_PREFIX}{name}": values.numpy() for name, values in network.state_dict().items()}
    states = optimizer.state_dict()["state"]
    adam = {
        f"{ADAM}{at}/{name}": value.numpy() for at, each in states.items() for name, value in each.items()
    }
    return weights | adam


def restore(network: nn.Module, optimizer: torch.optim.Optimizer, found: Arrays) -> None:
    """Load the weights and the Adam state from among other arrays of a checkpoint."""
    weights = {
        name.removeprefix(WEIGHTS_PREFIX): torch.from_numpy(each)
        for name, each in found.items()
        if name.startswith(WEIGHTS_PREFIX)
    }
    network.load_state_dict(weights)
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, each in found.items():
        if name.startswith(ADAM):
            at, what = name.removeprefix(ADAM).split("/")
            state.setdefault(int(at), {})[what] = torch.from_numpy(each)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


@dataclass(frozen=True)
class Agent:
    """A learned growth policy: the same object in evaluation and in real training.

    >>> import rota
    >>> untrained = rota.Agent.new("structural", {}, seed=0)
    >>> found = untrained.evaluate("results/recordings/trees/convnet2-cifar10-16-early-seed0")
    >>> found[["scenario", "of"]].values.tolist()
    [['early', 64]]
    """

    name: str
    """Name of its network."""
    options: Mapping[str, Any]
    """Options that its network was built with."""
    network: nn.Module
    about: Mapping[str, Any] = field(default_factory=dict)
    """What it was learned from, and how: plain values."""

    @classmethod
    def new(cls, name: str, options: Mapping[str, Any], seed: int) -> "Agent":
        """Return an agent with new weights, which depend on the seed only."""
        with torch.random.fork_rng(devices=()):
            torch.default_generator.manual_seed(seed)
            return cls(name, dict(options), build(name, dict(options)))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Agent":
        """Return the agent in a folder that `rota learn` wrote. Raises `rota.RotaError` if there is none."""
        return read_agent(Path(folder))

    def evaluate(self, recordings: str | os.PathLike[str]) -> "pd.DataFrame":
        """Return what the agent does in recorded trees: a row per tree, with baselines and the oracle.

        `recordings` is a tree, or a folder of trees. `accuracy` and `rank` (1 is best, out of `of`) are those
        of the sequence with the highest probabilities. `headroom` is 0 for the mean of all sequences and 1
        for the best. `never`, `random`, `fixed` and `oracle` are the accuracies of baselines; `seen` says
        whether the agent has learned from this tree. Raises `rota.RotaError` if there are no complete trees.
        """
        import pandas as pd

        from rota.learning.evaluate import rows
        from rota.learning.problem import problem_of, read_trees

        problems = [problem_of(tree) for tree in read_trees([located(Path(recordings))])]
        found = [row.to_json() for row in rows(self, problems, self.learned_from, self.fixed)]
        return pd.DataFrame([{**row, **row.pop("others")} for row in found])

    @property
    def learned_from(self) -> frozenset[str]:
        """The digests of the trees that it was learned from."""
        return frozenset(digest for stage in self.about.get("stages", ()) for digest in stage["digests"])

    def decides_between(self, actions: int) -> bool:
        """Whether the network can decide between this number of actions."""
        return self.options.get("actions") in (None, actions)

    @property
    def fixed(self) -> Mapping[str, Sequence[int]]:
        """The best fixed sequence on average over the trees that it was learned from, by kind of tree.

        Trees of an agent that it was started from do not count.
        """
        found: Mapping[str, Sequence[int]] = self.about.get("fixed", {})
        return found

    def probabilities(self, observation: Observation) -> list[float]:
        """Return the probability of each action, in the order of the actions of the observation."""
        return self.all_probabilities([observation])[0]

    def all_probabilities(self, observations: Sequence[Observation]) -> list[list[float]]:
        """Return the probability of each action, for each observation."""
        with torch.no_grad():
            chances = self.network(self.network.encode(observations)).softmax(-1)  # type: ignore[operator]
        if not chances.isfinite().all():
            raise InputError(f"agent {self.name}: its weights give no probabilities; {KINDS[KIND].again}")
        return [
            row[: len(observation.actions)].tolist()
            for row, observation in zip(chances, observations, strict=True)
        ]


def write_agent(
    folder: Path,
    agent: Agent,
    provenance: Provenance,
    config: Mapping[str, Any] | None = None,
    evaluation: Mapping[str, Any] | None = None,
) -> None:
    """Write an agent to a folder, `agent.json` last."""
    found = AgentFacts(
        kind=KIND,
        network=agent.name,
        options=dict(agent.options),
        features=features_of(agent.name),
        about=dict(agent.about),
        config=dict(config or {}),
        provenance=provenance.to_json(),
        evaluation=dict(evaluation or {}),
        sha256="",
    )
    write_agent_file(folder, found, arrays(agent.network))


def read_agent(folder: Path) -> Agent:
    """Read the agent in a folder. Raises InputError if there is none, or if it is damaged."""
    found = read_facts(folder, KIND)
    again = KINDS[KIND].again
    for stage in facts(_AgentAbout, found.about, folder / FACTS, again, others=True).stages:
        facts(_AgentStage, stage, folder / FACTS, again, others=True)
    weights = read_arrays(folder, found)
    try:
        agent = Agent.new(found.network, found.options, 0)
    except (TypeError, ValueError, RuntimeError) as error:
        raise another_version(folder, found, error) from None
    check_features(folder, found, features_of(found.network))
    try:
        fill(agent.network, weights)
    except ValueError as error:
        raise wrong_weights(folder, found, error) from None
    return Agent(agent.name, agent.options, agent.network, found.about)


def weights_sha256(folder: Path) -> str:
    """Return the checksum of the weights of the agent in a folder. Raises InputError if there is none."""
    return read_facts(folder, KIND).sha256


def arrays(network: nn.Module) -> dict[str, NDArray[Any]]:
    """Return the weights of a network by name."""
    return {name: values.numpy() for name, values in network.state_dict().items()}


def fill(network: nn.Module, weights: Arrays) -> None:
    """Load weights into a network. Raises ValueError if they are not those of such a network."""
    try:
        if any(np.iscomplexobj(values) for values in weights.values()):
            raise ValueError("complex numbers")
        network.load_state_dict({name: torch.from_numpy(values) for name, values in weights.items()})
    except (RuntimeError, TypeError) as error:
        raise ValueError(str(error)) from None


@dataclass(frozen=True, slots=True)
class _AgentAbout:
    seed: int = 0
    stages: tuple[dict[str, object], ...] = ()
    fixed: dict[str, tuple[int, ...]] = field(default_factory=dict)
    seconds: float = 0.0
    episodes: int = 0


@dataclass(frozen=True, slots=True)
class _AgentStage:
    digests: tuple[str, ...]
