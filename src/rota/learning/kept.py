"""Weights and checkpoints as files of plain arrays, never a pickle."""

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

WEIGHTS, ADAM = "weights/", "adam/"
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
    weights = {f"{WEIGHTS}{name}": values.numpy() for name, values in network.state_dict().items()}
    states = optimizer.state_dict()["state"]
    adam = {
        f"{ADAM}{at}/{name}": value.numpy() for at, each in states.items() for name, value in each.items()
    }
    return weights | adam


def restore(network: nn.Module, optimizer: torch.optim.Optimizer, found: Arrays) -> None:
    """The same, from among other things that were kept."""
    weights = {
        name.removeprefix(WEIGHTS): torch.from_numpy(each)
        for name, each in found.items()
        if name.startswith(WEIGHTS)
    }
    network.load_state_dict(weights)
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, each in found.items():
        if name.startswith(ADAM):
            at, what = name.removeprefix(ADAM).split("/")
            state.setdefault(int(at), {})[what] = torch.from_numpy(each)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
