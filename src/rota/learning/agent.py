"""Agents that decide how networks grow, and their files: plain arrays, never a pickle."""

import hashlib
import io
import json
import os
import struct
import zipfile
import zlib
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
from rota.core.files import atomic_write, located, read_facts
from rota.core.network import Observation
from rota.learning.files import FACTS, WEIGHTS
from rota.learning.networks.registry import build
from rota.recordings.folder import Provenance

if TYPE_CHECKING:
    import pandas as pd


WEIGHTS_PREFIX, ADAM = "weights/", "adam/"
DAMAGE = (OSError, EOFError, AttributeError, KeyError, TypeError, RuntimeError, struct.error, zlib.error)
Arrays = Mapping[str, NDArray[Any]]


def as_file(arrays: Arrays) -> bytes:
    """Return the content of an .npz file with these arrays."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]  # by name
    return stream.getvalue()


def read_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays in the content of an .npz file. Raises ValueError if it is damaged."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except (*DAMAGE, zipfile.BadZipFile) as error:
        raise ValueError(str(error) or repr(error)) from None


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


FORMAT = "rota agent"
VERSION = 1
AGAIN = "learn it again"


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
        return self.all_probabilities([observation])[0]

    def all_probabilities(self, observations: Sequence[Observation]) -> list[list[float]]:
        """Return the probability of each action, for each observation."""
        with torch.no_grad():
            chances = self.network(self.network.encode(observations)).softmax(-1)  # type: ignore[operator]
        if not chances.isfinite().all():
            raise InputError(f"agent {self.name}: its weights give no probabilities; {AGAIN}")
        return [
            row[: len(observation.actions)].tolist()
            for row, observation in zip(chances, observations, strict=True)
        ]


def write_agent(folder: Path, agent: Agent, provenance: Provenance) -> None:
    """Write an agent to a folder, `agent.json` last."""
    weights = arrays(agent.network)
    said = {
        "format": FORMAT,
        "version": VERSION,
        "network": agent.name,
        "options": dict(agent.options),
        "about": dict(agent.about),
        "provenance": provenance.to_json(),
        "sha256": hashlib.sha256(weights).hexdigest(),
    }
    with atomic_write(folder / WEIGHTS) as stream:
        stream.write(weights)
    with atomic_write(folder / FACTS) as stream:
        stream.write((json.dumps(said, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode())


def read_agent(folder: Path) -> Agent:
    """Read the agent in a folder. Raises InputError if there is none, or if it is damaged."""
    found = _facts(folder / FACTS)
    path = folder / WEIGHTS
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {AGAIN}") from None
    if hashlib.sha256(content).hexdigest() != found["sha256"]:
        raise InputError(f"{path}: damaged or cut short (checksum differs from {FACTS}); {AGAIN}")
    try:
        agent = Agent.new(found["network"], found["options"], 0)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{folder / FACTS}: of another version of rota ({error}); {AGAIN}") from None
    fill(agent.network, content, path)
    return Agent(agent.name, agent.options, agent.network, found["about"])


def weights_sha256(folder: Path) -> str:
    """Return the checksum of an agent's weights."""
    return str(_facts(folder / FACTS)["sha256"])


def arrays(network: nn.Module) -> bytes:
    """Return the weights of a network as the content of an .npz file."""
    return as_file({name: values.numpy() for name, values in network.state_dict().items()})


def fill(network: nn.Module, content: bytes, path: Path) -> None:
    """Load weights, the content of the .npz file at `path`, into a network."""
    try:
        state = {name: torch.from_numpy(values) for name, values in read_arrays(content).items()}
        if any(values.is_complex() for values in state.values()):
            raise ValueError("complex numbers")
        network.load_state_dict(state)
    except (ValueError, RuntimeError, TypeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"{path}: not the weights of this agent ({reason}); {AGAIN}") from None


def _facts(path: Path) -> dict[str, Any]:
    other = "give the folder that rota learn wrote"
    absent = f"{path.parent}: no agent in it ({path.name} is missing); {other}"
    found = read_facts(path, FORMAT, VERSION, "an agent", missing=absent, other=other, again=AGAIN)
    missing = {"network", "options", "about", "sha256"} - set(found)
    if missing:
        raise InputError(f"{path}: does not say {', '.join(sorted(missing))}; {AGAIN}")
    bound = facts(_AgentJson, found, path, AGAIN, others=True)
    for stage in facts(_AgentAbout, bound.about, path, AGAIN, others=True).stages:
        facts(_AgentStage, stage, path, AGAIN, others=True)
    return found


@dataclass(frozen=True, slots=True)
class _AgentJson:
    network: str
    options: dict[str, int | float | str]
    about: dict[str, object]
    sha256: str


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
