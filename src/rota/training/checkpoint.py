"""Save a training run at any step, and resume it exactly.

A checkpoint holds the weights, the state of the optimiser, the progress, the clock, and the changes of the
network. To load one, give the network as it was at first: the changes are repeated, then the weights are
filled in. Files are written atomically and carry a checksum.
"""

import hashlib
import io
import pickle
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rota.core.errors import InputError
from rota.core.files import write_file
from rota.core.network import Change
from rota.training.clock import StoppedClock, TrainingProgress
from rota.training.describe import describe
from rota.training.task import check_data
from rota.training.trainer import Trainer

MAGIC = b"rota checkpoint 1\n"
AGAIN = "delete it, and what it was the checkpoint of begins again"


def save(path: Path, trainer: Trainer, **extra: Any) -> None:
    """Write all that exact resumption needs; `extra` holds plain values of the caller."""
    content = to_bytes(trainer, **extra)
    write_file(path, MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def load(path: Path, trainer: Trainer) -> dict[str, Any]:
    """Bring a new trainer to the saved state; return the caller's `extra`."""
    return from_bytes(_read(path), trainer, path)


def to_bytes(trainer: Trainer, **extra: Any) -> bytes:
    """Return what `save` writes, as bytes."""
    body = io.BytesIO()
    torch.save({**_state(trainer), "extra": extra}, body)
    return body.getvalue()


def from_bytes(content: bytes, trainer: Trainer, path: Path) -> dict[str, Any]:
    """Do as `load`, from bytes; `path` is used in messages."""
    if trainer.progress.steps or trainer.history:
        raise ValueError("a checkpoint is loaded into a trainer that has not begun")
    state = _unpacked(content, path)
    started = describe(trainer.network).fingerprint
    if started != state["started_as"]:
        raise InputError(
            f"{path}: is the checkpoint of another network (structure {state['started_as']}, "
            f"this is {started}); give the model, data and size it was trained with"
        )
    if state["optimizer_class"] != type(trainer.optimizer).__name__:
        raise InputError(
            f"{path}: was trained with {state['optimizer_class']}, this is "
            f"{type(trainer.optimizer).__name__}; give the optimizer it was trained with"
        )
    check_data(trainer.task, state.get("data", ""), path)
    _restore(path, trainer, state)
    extra: dict[str, Any] = state["extra"]
    return extra


def _state(trainer: Trainer) -> dict[str, Any]:
    progress = trainer.progress
    teacher = trainer.teacher
    return {
        "started_as": trainer.started_as,
        "history": [(steps, str(change)) for steps, change in trainer.history],
        "network": trainer.network.state_dict(),
        "smaller": [network.state_dict() for network in trainer.smaller],
        "teacher": None
        if teacher is None
        else {"network": teacher.network.state_dict(), **teacher.state_dict()},
        "optimizer_class": type(trainer.optimizer).__name__,
        "optimizer": trainer.optimizer.state_dict(),
        "hyper": {name: getattr(trainer.hyper, name) for name in ("lr", "momentum", "batch_size")},
        "progress": {name: getattr(progress, name) for name in TrainingProgress.__slots__},
        "clock": trainer.clock.state_dict(),
        "task": trainer.task.state_dict(),
        "data": trainer.task.digest,
        "random": torch.get_rng_state(),
        "random_cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def _restore(path: Path, trainer: Trainer, state: dict[str, Any]) -> None:
    clock, trainer.clock = trainer.clock, StoppedClock()  # which needs no step times
    for steps, change in state["history"]:
        trainer.progress.steps = steps
        trainer.change(Change.parse(change))
    trainer.clock = clock
    trainer.set(**state["hyper"])
    _fill(path, trainer.network, state["network"])
    for network, weights in zip(trainer.smaller, state["smaller"], strict=True):
        _fill(path, network, weights)
    if state["teacher"] is None:
        trainer.teacher = None
    elif trainer.teacher is not None:
        _fill(path, trainer.teacher.network, state["teacher"]["network"])
        trainer.teacher.load_state_dict(state["teacher"])
    trainer.optimizer.load_state_dict(state["optimizer"])
    trainer.progress = TrainingProgress(**state["progress"])
    trainer.clock.load_state_dict(state["clock"])
    trainer.task.load_state_dict(state["task"])
    torch.set_rng_state(state["random"])
    if state["random_cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["random_cuda"])


def _fill(path: Path, network: nn.Module, weights: dict[str, Any]) -> None:
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"{path}: is the checkpoint of another network: {reason}") from None


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    head, _, rest = content.partition(b"\n")
    checksum, _, body = rest.partition(b"\n")
    if head + b"\n" != MAGIC:
        raise InputError(f"{path}: is not a checkpoint that rota wrote; {AGAIN}")
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        raise InputError(f"{path}: is damaged (its checksum does not match); {AGAIN}")
    return body


def _unpacked(content: bytes, path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError) as error:
        raise InputError(f"{path}: cannot be loaded: {error}; {AGAIN}") from None
    return state
