"""The cluster schedulers by name; `module:Class` and `path/to/file.py:Class` name those of others.

To add one to rota: write its file in this folder, add its line here. A scheduler is a frozen dataclass whose
fields are its options, with `needs` and `plan(view)` as in `rota.core.policy.Policy`. The contract tests over
this table then cover it, and so do the commands.
"""

from importlib import import_module
from typing import Any

from rota.core.errors import ConfigError, unknown
from rota.core.registry import ClassContract, find_class, is_outside, name_of

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


SEAM = ClassContract("scheduler", "rota.Scheduler", {"plan": ("view",)}, ("needs",))
"""What a class must have to be a scheduler."""


def canonical(name: str) -> str:
    """The name of a scheduler, given that, an alias, or where its class is."""
    if is_outside(name):
        return outside_name(scheduler_class(name), name)
    found = ALIASES.get(name, name)
    if found not in SCHEDULERS:
        raise ConfigError(unknown("scheduler", name, SCHEDULERS))
    return found


def scheduler_class(name: str) -> Any:
    """The class behind a name; only its own module is imported."""
    if is_outside(name):
        return find_class(name, SEAM)
    module, attribute = SCHEDULERS[canonical(name)].split(":")
    return getattr(import_module(module), attribute)


def outside_name(found: type, where: str) -> str:
    """What a class is called that is not rota's; an error if one of rota's own is called so."""
    name = name_of(found)
    if name in SCHEDULERS or name in ALIASES:
        raise ConfigError(
            f"{where}: is called {name!r}, as a scheduler of rota's; give the class another name, or a `name`"
        )
    return name


def own_name(found: type) -> str | None:
    """The name of a class of rota's; none if it is not."""
    named = f"{found.__module__}:{found.__qualname__}"
    return next((name for name, where in SCHEDULERS.items() if where == named), None)
