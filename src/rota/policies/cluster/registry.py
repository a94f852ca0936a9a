"""The cluster schedulers by name. To add one: write its file in this folder, add its line here.

A scheduler is a frozen dataclass whose fields are its options, with `needs` and `plan(view)` as in
`rota.core.loop.Policy`. The contract tests over this table then cover it, and so do the commands.
"""

from importlib import import_module
from typing import Any

from rota.core.errors import ConfigError, unknown

SCHEDULERS = {
    "fifo": "rota.policies.cluster.fifo:Fifo",
    "srtf": "rota.policies.cluster.srtf:Srtf",
    "srsf": "rota.policies.cluster.srsf:Srsf",
    "tiresias": "rota.policies.cluster.tiresias:Tiresias",
    "themis": "rota.policies.cluster.themis:Themis",
    "antman": "rota.policies.cluster.antman:AntMan",
    "muri-s": "rota.policies.cluster.muri:MuriS",
    "muri-l": "rota.policies.cluster.muri:MuriL",
    "muri-l-worst-order": "rota.policies.cluster.muri:MuriLWorstOrder",
    "muri-l-no-blossom": "rota.policies.cluster.muri:MuriLNoBlossom",
}

ALIASES = {
    "shortest": "srtf",
    "shortest-gpu": "srsf",
    "dlas-gpu": "tiresias",
    "multi-resource-blossom-same-gpu": "muri-s",
    "multi-resource-blossom-same-gpu-unaware": "muri-l",
    "multi-resource-blossom-same-gpu-unaware-worstordering": "muri-l-worst-order",
    "multi-resource-gpu-unaware": "muri-l-no-blossom",
}
"""The names that the schedulers had in the Muri simulator."""


def canonical(name: str) -> str:
    """The name of a scheduler, given that or an alias."""
    found = ALIASES.get(name, name)
    if found not in SCHEDULERS:
        raise ConfigError(unknown("scheduler", name, SCHEDULERS))
    return found


def scheduler_class(name: str) -> Any:
    """The class behind a name; only its own module is imported."""
    module, attribute = SCHEDULERS[canonical(name)].split(":")
    return getattr(import_module(module), attribute)
