"""The actor of a slot: it carries out orders in a process that Ray has started, wherever that is."""

import os
import platform
from pathlib import Path
from typing import Any

from rota.core.errors import InputError, RotaError
from rota.execution.checkpoints import Checkpoints
from rota.execution.ray_store import FarCheckpoints
from rota.execution.worker import Hand, Hello, hand, parse_hello


class SlotActor:
    """Orders and answers are the lines that other workers read and write, so nothing of ours is pickled."""

    def __init__(self, trial: str, hello: bytes, log: str, store: Any, *, sees_gpu: bool) -> None:
        if not sees_gpu:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        self._why_not = ""
        try:
            self._worker = _worker(trial, parse_hello(hello), log, store)
        except RotaError as error:
            self._why_not = str(error)

    def ready(self) -> str:
        """Nothing if it can train; else why not."""
        return self._why_not

    def carry_out(self, order: bytes) -> bytes:
        return self._worker.answer(order)

    def pid(self) -> int:
        return os.getpid()


def _worker(trial: str, hello: Hello, log: str, store: Any) -> Hand:
    """What it needs is in the folder of the run, or with whoever keeps it."""
    if store is None:
        _check_shared(hello.checkpoints)
        _print_to(log)
    checkpoints = FarCheckpoints(store) if store is not None else Checkpoints(Path(hello.checkpoints))
    return hand(trial, hello, checkpoints)


def _check_shared(folder: str) -> None:
    if not Path(folder).is_dir():
        raise InputError(
            f"{folder}: not there on {platform.node()}; put the run on storage that all nodes share, "
            "or set ray.shared to false"
        )


def _print_to(log: str) -> None:
    """What a trial prints belongs to the run, not to Ray's session, which is gone after it."""
    printed = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(printed, descriptor)
    os.close(printed)
