"""The state of Adam as plain arrays, for checkpoints."""

from collections.abc import Mapping

import torch
from torch import Tensor

from rota.core.table import Floats

PREFIX = "adam/"


def adam_arrays(optimizer: torch.optim.Optimizer) -> dict[str, Floats]:
    """By name."""
    states = optimizer.state_dict()["state"]
    return {
        f"{PREFIX}{at}/{name}": values.numpy() for at, each in states.items() for name, values in each.items()
    }


def restore_adam(optimizer: torch.optim.Optimizer, found: Mapping[str, Tensor]) -> None:
    """What was kept, among other things."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, values in found.items():
        if name.startswith(PREFIX):
            at, what = name.removeprefix(PREFIX).split("/")
            state.setdefault(int(at), {})[what] = values
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
