"""The networks of agents by name. To add one: write its file in this folder, add its line here.

A network has `encode`, which turns observations into tensors with `left` (the remaining time) and `at(left)`
(the same at other times), and `forward`, which returns a score for each action of each observation.
`options(actions)` returns what it is built with: plain values that an agent's file can hold. `FEATURES` says
what it sees.
"""

from importlib import import_module
from typing import Any

from torch import nn

from rota.core.errors import ConfigError, unknown
from rota.policies.agents import Feature

NETWORKS = {
    "structural": "rota.learning.networks.structural:Structural",
    "original": "rota.learning.networks.original:Original",
}


def options_for(name: str, actions: int) -> dict[str, Any]:
    """Return the options of a network that decides between this number of actions."""
    found: dict[str, Any] = _class(name).options(actions)
    return found


def build(name: str, options: dict[str, Any]) -> nn.Module:
    """Return a network with new weights."""
    network: nn.Module = _class(name)(**options)
    return network


def features_of(name: str) -> tuple[Feature, ...]:
    """Return what a network sees."""
    found: tuple[Feature, ...] = _class(name).FEATURES
    return found


def _class(name: str) -> Any:
    if name not in NETWORKS:
        raise ConfigError(unknown("network", name, NETWORKS))
    module, attribute = NETWORKS[name].split(":")
    return getattr(import_module(module), attribute)
