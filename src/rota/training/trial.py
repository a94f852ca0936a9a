"""Real networks as trials of a population: what the workers of `rota run` train."""

import io
import json
import pickle
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rota.config.bind import bind
from rota.config.load import dump
from rota.core.errors import InputError
from rota.core.network import Change, Structure
from rota.core.population.events import Hyper
from rota.training.checkpoint import from_bytes, to_bytes
from rota.training.clock import StoppedClock
from rota.training.describe import with_blocks
from rota.training.setup import Setup, own_seed
from rota.training.trainer import OUT_OF_MEMORY, Trainer


class NetworkTrial:
    """A worker's network, one trial at a time; the data stay loaded between trials.

    Trials see the same examples in the same order, and start with weights of their own.
    """

    def __init__(self, setup: Setup, seed: int) -> None:
        self._setup, self._seed = setup, seed
        self._settings = tomllib.loads(dump(setup.at_once))
        self._trainer = self._fresh(0)
        self._changes: tuple[str, ...] = ()

    def begin(self, trial: int) -> None:
        self._trainer, self._changes = self._fresh(trial), ()

    def load(self, content: bytes) -> None:
        self._trainer = self._fresh(0)
        extra = from_bytes(content, self._trainer, Path("the checkpoint of a trial"))
        self._changes = tuple(extra["changes"])

    def save(self) -> bytes:
        return to_bytes(self._trainer, changes=list(self._changes), training=self._settings)

    def train(self, steps: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        """Train for an interval; an infinite or NaN loss ends it early, before that step.

        Raises MemoryError for lack of memory.
        """
        self._change(changes)
        self._set(hyper)
        until = self._trainer.progress.steps + steps
        while self._trainer.progress.steps < until:
            epoch = self._trainer.epoch(until_steps=until, evaluate=False)
            if epoch.failure.startswith(OUT_OF_MEMORY):
                raise MemoryError(epoch.failure)
            if epoch.ended == "failed":
                return

    @property
    def network(self) -> nn.Module:
        """The current network."""
        return self._trainer.network

    @property
    def steps(self) -> int:
        """Steps trained so far, over all intervals."""
        return self._trainer.progress.steps

    def evaluate(self) -> float:
        task = self._trainer.task
        return task.evaluate(self._trainer.network)[task.metric]

    def _fresh(self, trial: int) -> Trainer:
        return self._setup.trainer(StoppedClock(), seed=self._seed, weights=own_seed(self._seed, trial))

    def _change(self, changes: tuple[str, ...]) -> None:
        """Make the changes of the network that have not been made yet."""
        had = len(self._changes)
        if changes[:had] != self._changes:
            raise InputError(
                f"the network has been changed by {self._changes}, which {changes} does not begin with"
            )
        for change in changes[had:]:
            self._trainer.change(Change.parse(change))
        self._changes = changes

    def _set(self, hyper: Hyper) -> None:
        """Set the hyper-parameters that differ: setting a learning rate again would restart its decay."""
        now = self._trainer.hyper
        new = {name: value for name, value in hyper.items() if getattr(now, name, None) != value}
        if new:
            self._trainer.set(**new)


def network(settings: Mapping[str, Any], seed: int) -> NetworkTrial:
    """Return the trials that `[training]` in a configuration describes."""
    return NetworkTrial(bind(Setup, settings, "training"), seed)


def grown_network(
    settings: Mapping[str, Any], changes: tuple[str, ...]
) -> tuple[Structure, tuple[tuple[int, ...], ...]]:
    """Return the structure of a new network after these changes, and the layers of its blocks."""
    return _grown_network(json.dumps(settings, sort_keys=True), changes)


@cache
def _grown_network(settings: str, changes: tuple[str, ...]) -> tuple[Structure, tuple[tuple[int, ...], ...]]:
    setup = bind(Setup, json.loads(settings), "training").at_once
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        trainer = setup.trainer(StoppedClock(), seed=0)
        for change in changes:
            trainer.change(Change.parse(change))
    return with_blocks(trainer.network)


def load_exported(file: str | Path, device: str = "cpu") -> nn.Module:
    """Return the network in a file that `rota run --export` wrote, on a device, in evaluation mode.

    Its data set is read, as the shape of the network follows from it. Raises InputError for any other file.
    """
    path = Path(file)
    try:
        content = path.read_bytes()
        settings = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)["extra"]["training"]
    except (OSError, RuntimeError, pickle.UnpicklingError, EOFError, LookupError, TypeError) as error:
        raise InputError(f"{path}: no network that rota run --export wrote ({error})") from None
    trial = network({**settings, "device": device}, 0)
    trial.load(content)
    return trial.network.eval()
