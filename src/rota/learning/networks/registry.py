"""The networks of agents by name. To add one: write its file in this folder, add its line here.

A network has `encode(sights)`, which gives tensors, with `left` and `at(left)` to move them in time, and
`forward` of those, which gives a score for each action of each sight. What it is built with are plain values
that an agent's file can hold.
"""

from importlib import import_module
from typing import Any

from torch import nn

from rota.core.errors import ConfigError, unknown

NETWORKS = {
    "structural": "rota.learning.networks.structural:Structural",
    "original": "rota.learning.networks.original:Original",
}


def build(name: str, options: dict[str, Any]) -> nn.Module:
    """A network with fresh weights."""
    if name not in NETWORKS:
        raise ConfigError(unknown("network", name, NETWORKS))
    module, attribute = NETWORKS[name].split(":")
    network: nn.Module = getattr(import_module(module), attribute)(**options)
    return network
