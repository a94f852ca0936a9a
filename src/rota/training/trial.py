"""Trials of a population that are real networks: what the workers of `rota run` train."""

import io
import pickle
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rota.config.bind import bind
from rota.config.load import dump
from rota.core.errors import InputError
from rota.core.network import Change
from rota.core.population.events import Hyper
from rota.training.checkpoint import from_bytes, to_bytes
from rota.training.clock import StoppedClock
from rota.training.setup import Setup, own_seed
from rota.training.trainer import OUT_OF_MEMORY, Trainer


class NetworkTrial:
    """One network at a time; the data stay when another trial comes.

    Trials see the same examples in the same order. They begin with weights of their own.
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
        """A loss that is no longer a number ends it early: the trial is then as good as it was before.

        What does not fit into memory is an error.
        """
        self._change(changes)
        self._tell(hyper)
        until = self._trainer.progress.steps + steps
        while self._trainer.progress.steps < until:
            epoch = self._trainer.epoch(until_steps=until, evaluate=False)
            if epoch.failure.startswith(OUT_OF_MEMORY):
                raise MemoryError(epoch.failure)
            if epoch.ended == "failed":
                return

    @property
    def network(self) -> nn.Module:
        """What is trained, as it is now."""
        return self._trainer.network

    @property
    def steps(self) -> int:
        """So many it has been trained for, over all parts."""
        return self._trainer.progress.steps

    def evaluate(self) -> float:
        task = self._trainer.task
        return task.evaluate(self._trainer.network)[task.metric]

    def _fresh(self, trial: int) -> Trainer:
        return self._setup.trainer(StoppedClock(), seed=self._seed, weights=own_seed(self._seed, trial))

    def _change(self, changes: tuple[str, ...]) -> None:
        """Do to the network what has not been done to it yet."""
        had = len(self._changes)
        if changes[:had] != self._changes:
            raise InputError(
                f"the network has been changed by {self._changes}, which {changes} does not begin with"
            )
        for change in changes[had:]:
            self._trainer.change(Change.parse(change))
        self._changes = changes

    def _tell(self, hyper: Hyper) -> None:
        """Only what is new: a learning rate that is told again would begin to fall anew."""
        now = self._trainer.hyper
        new = {name: value for name, value in hyper.items() if getattr(now, name, None) != value}
        if new:
            self._trainer.set(**new)


def network(settings: Mapping[str, Any], seed: int) -> NetworkTrial:
    """What `[training]` in a configuration says."""
    return NetworkTrial(bind(Setup, settings, "training"), seed)


def load_exported(file: str | Path, device: str = "cpu") -> nn.Module:
    """Return the network in a file that `rota run --export` wrote, on a device, ready to predict.

    Its data set is read, for what the network is made for follows from it. Raises InputError if the file is
    another.
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
