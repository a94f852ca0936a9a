"""A learned agent and its files: plain arrays, never a pickle."""

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
from rota.core.files import atomic_write, located, parsed
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
    """The content of an .npz file."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]  # by name
    return stream.getvalue()


def read_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """What is in such a file; a ValueError if that is none."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except (*DAMAGE, zipfile.BadZipFile) as error:
        raise ValueError(str(error) or repr(error)) from None


def state_of(network: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, NDArray[Any]]:
    """What a network has become, and the state of its Adam."""
    weights = {f"{WEIGHTS_PREFIX}{name}": values.numpy() for name, values in network.state_dict().items()}
    states = optimizer.state_dict()["state"]
    adam = {
        f"{ADAM}{at}/{name}": value.numpy() for at, each in states.items() for name, value in each.items()
    }
    return weights | adam


def restore(network: nn.Module, optimizer: torch.optim.Optimizer, found: Arrays) -> None:
    """The same, from among other things that were kept."""
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
    """An adaptation policy that was learned: the same object in evaluation and in real training.

    >>> import rota
    >>> untrained = rota.Agent.new("structural", {}, seed=0)
    >>> found = untrained.evaluate("results/recordings/trees/convnet2-cifar10-16-early-seed0")
    >>> found[["scenario", "of"]].values.tolist()
    [['early', 64]]
    """

    name: str
    """Of its network."""
    options: Mapping[str, Any]
    """That its network was built with."""
    network: nn.Module
    about: Mapping[str, Any] = field(default_factory=dict)
    """What it was learned from and how: plain values."""

    @classmethod
    def new(cls, name: str, options: Mapping[str, Any], seed: int) -> "Agent":
        """With fresh weights, which depend on the seed only."""
        with torch.random.fork_rng(devices=()):
            torch.default_generator.manual_seed(seed)
            return cls(name, dict(options), build(name, dict(options)))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Agent":
        """Return the agent in a folder that `rota learn` wrote. Raises `rota.RotaError` if there is none."""
        return read_agent(Path(folder))

    def evaluate(self, recordings: str | os.PathLike[str]) -> "pd.DataFrame":
        """Return what it would do in recorded trees: a row per tree, beside baselines and the oracle.

        `recordings` is a tree, or a folder of trees. `accuracy` and `rank` (1 is best, `of` so many) are
        those of the sequence that the agent thinks likeliest; `headroom` is 0 for the mean of all sequences
        and 1 for the best. `never`, `random`, `fixed` and `oracle` are accuracies of others; `seen` says
        whether the agent has learned from this tree.
        """
        import pandas as pd

        from rota.learning.evaluate import rows
        from rota.learning.problem import problem_of, read_trees

        problems = [problem_of(tree) for tree in read_trees([located(Path(recordings))])]
        found = [row.to_json() for row in rows(self, problems, self.learned_from, self.fixed)]
        return pd.DataFrame([{**row, **row.pop("others")} for row in found])

    @property
    def learned_from(self) -> frozenset[str]:
        """The digests of the trees."""
        return frozenset(digest for stage in self.about.get("stages", ()) for digest in stage["digests"])

    def decides_between(self, actions: int) -> bool:
        """Whether it can decide between so many."""
        return self.options.get("actions") in (None, actions)

    @property
    def fixed(self) -> Mapping[str, Sequence[int]]:
        """Kind of tree → the one sequence that is best on average where it has learned.

        What it started from had learned elsewhere, which does not count.
        """
        found: Mapping[str, Sequence[int]] = self.about.get("fixed", {})
        return found

    def probabilities(self, sight: Observation) -> list[float]:
        return self.all_probabilities([sight])[0]

    def all_probabilities(self, sights: Sequence[Observation]) -> list[list[float]]:
        """How likely each action of each sight is."""
        with torch.no_grad():
            chances = self.network(self.network.encode(sights)).softmax(-1)  # type: ignore[operator]
        if not chances.isfinite().all():
            raise InputError(f"agent {self.name}: its weights give no probabilities; {AGAIN}")
        return [row[: len(sight.actions)].tolist() for row, sight in zip(chances, sights, strict=True)]


def write_agent(folder: Path, agent: Agent, provenance: Provenance) -> None:
    """Write an agent; `agent.json` comes last."""
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
    """What was written."""
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
    """The checksum that tells one agent from another."""
    return str(_facts(folder / FACTS)["sha256"])


def arrays(network: nn.Module) -> bytes:
    """The weights of a network as an .npz file."""
    return as_file({name: values.numpy() for name, values in network.state_dict().items()})


def fill(network: nn.Module, content: bytes, path: Path) -> None:
    """Put weights into the network that they are of."""
    try:
        state = {name: torch.from_numpy(values) for name, values in read_arrays(content).items()}
        if any(values.is_complex() for values in state.values()):
            raise ValueError("complex numbers")
        network.load_state_dict(state)
    except (ValueError, RuntimeError, TypeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"{path}: not the weights of this agent ({reason}); {AGAIN}") from None


def _facts(path: Path) -> dict[str, Any]:
    try:
        found = parsed(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path.parent}: no agent in it ({path.name} is missing); give the folder that rota learn wrote"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); {AGAIN}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"{path}: not the facts of an agent; give the folder that rota learn wrote")
    if found.get("version") != VERSION:
        raise InputError(
            f"{path}: an agent of version {found.get('version')!r}, this rota reads {VERSION}; {AGAIN}"
        )
    missing = {"network", "options", "about", "sha256"} - set(found)
    if missing:
        raise InputError(f"{path}: does not say {', '.join(sorted(missing))}; {AGAIN}")
    bound = facts(_AgentJson, found, path, AGAIN, others=True)
    for stage in facts(_AgentAbout, bound.about, path, AGAIN, others=True).stages:
        facts(_AgentStage, stage, path, AGAIN, others=True)
    return found


@dataclass(frozen=True, slots=True)
class _AgentJson:
    """What `agent.json` says."""

    network: str
    options: dict[str, int | float | str]
    about: dict[str, object]
    sha256: str


@dataclass(frozen=True, slots=True)
class _AgentAbout:
    """What it says of how the agent was learned, as far as somebody reads it."""

    seed: int = 0
    stages: tuple[dict[str, object], ...] = ()
    fixed: dict[str, tuple[int, ...]] = field(default_factory=dict)
    seconds: float = 0.0
    episodes: int = 0


@dataclass(frozen=True, slots=True)
class _AgentStage:
    digests: tuple[str, ...]
