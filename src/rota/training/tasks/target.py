"""The target network of Q-learning: what the network was a while ago."""

from copy import deepcopy
from typing import Any

from torch import Tensor, nn


class Target:
    """A copy, renewed after so many examples, and at once when the network is no longer built like it."""

    def __init__(self, held: int) -> None:
        self._held = held
        self._period = -1
        self._weights: dict[str, Tensor] = {}
        self._copy: nn.Module | None = None

    def of(self, network: nn.Module, position: int) -> nn.Module:
        """The copy to ask at this position."""
        now = network.state_dict()
        if position // self._held != self._period or not _alike(now, self._weights):
            self._period = position // self._held
            self._weights = {name: weight.detach().clone() for name, weight in now.items()}
            self._copy = None
        if self._copy is None:
            self._copy = deepcopy(network).eval()
            self._copy.load_state_dict(self._weights)
        return self._copy

    def state_dict(self) -> dict[str, Any]:
        weights = {name: weight.clone() for name, weight in self._weights.items()}
        return {"period": self._period, "weights": weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._period, self._weights, self._copy = state["period"], state["weights"], None


def _alike(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    if one.keys() != other.keys():
        return False
    return all(weight.shape == other[name].shape for name, weight in one.items())
