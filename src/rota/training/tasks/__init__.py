"""The tasks of networks, and which model has which."""

from functools import lru_cache

import torch

from rota.core.errors import ConfigError
from rota.training.models.registry import model as entry_of
from rota.training.task import Task

OWN_DATA = {"language": "stdlib", "a2c": "cartpole", "dqn": "cartpole"}
"""Task → its data, for tasks without a data set of images."""
GAMES = 8
"""Number of games played side by side."""


def check_batch(model: str, size: int) -> None:
    """Raise if the task of a model cannot make batches of that size."""
    if entry_of(model).task == "a2c" and size % GAMES:
        raise ConfigError(
            f"batch_size is {size}; A2C plays {GAMES} games at once: give a multiple of {GAMES}"
        )


def task_of(
    model: str,
    data: str | None = None,
    *,
    device: torch.device,
    seed: int = 0,
    size: int | None = None,
    augment: bool = False,
    validation: int | None = None,
    test: int | None = None,
    generated: bool = False,
) -> Task:
    """Return the task of a model of the registry; the default data set of images is digits."""
    kind = entry_of(model).task
    if kind == "classification":
        from rota.training.data import load
        from rota.training.tasks.supervised import Classification

        splits = load(
            data or "digits", size=size, validation=validation, test=test, seed=seed, generated=generated
        )
        return Classification(splits, device=device, seed=seed, augment=augment)
    if data not in (None, OWN_DATA[kind]):
        raise ConfigError(f"data {data!r}: model {model!r} learns from {OWN_DATA[kind]!r}; leave data out")
    if augment or generated or any(each is not None for each in (size, validation, test)):
        keys = "size, augment, generated, validation and test"
        raise ConfigError(f"model {model!r}: takes no images; leave out {keys}")
    if kind == "language":
        from rota.training.tasks.supervised import Language

        return Language(device=device, seed=seed)
    from rota.training.tasks.reinforcement import A2C, DQN

    return A2C(device=device, seed=seed) if kind == "a2c" else DQN(device=device, seed=seed)


shared_task = lru_cache(maxsize=12)(task_of)
"""Function that makes a task once for equal arguments, for tasks without state."""
