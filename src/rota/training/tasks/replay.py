"""What was seen while playing, to be learned from again."""

from typing import Any

import torch
from torch import Tensor

FIELDS = {"before": torch.float32, "action": torch.int64, "after": torch.float32, "fell": torch.bool}


class Replay:
    """The last so many transitions, as columns on the CPU; the oldest gives way to the newest."""

    def __init__(self, capacity: int, observation: tuple[int, ...]) -> None:
        shapes = {"before": observation, "action": (), "after": observation, "fell": ()}
        self._columns = {
            name: torch.zeros(capacity, *shapes[name], dtype=kind) for name, kind in FIELDS.items()
        }
        self._capacity = capacity
        self._added = 0

    def __len__(self) -> int:
        return min(self._added, self._capacity)

    def add(self, **transitions: Tensor) -> None:
        """Rows of every field, at most as many as there is room for altogether."""
        rows = len(transitions["action"])
        places = (self._added + torch.arange(rows)) % self._capacity
        for name, column in self._columns.items():
            column[places] = transitions[name]
        self._added += rows

    def rows(self, indices: Tensor, device: torch.device) -> dict[str, Tensor]:
        """The fields of some transitions, on a device."""
        return {name: column[indices].to(device) for name, column in self._columns.items()}

    def state_dict(self) -> dict[str, Any]:
        columns = {name: column[: len(self)].clone() for name, column in self._columns.items()}
        return {"added": self._added, "columns": columns}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._added = state["added"]
        for name, column in self._columns.items():
            column[: len(self)] = state["columns"][name]
