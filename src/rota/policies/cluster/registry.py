"""Cluster schedulers by name; `module:Class` or `path/to/file.py:Class` names any other.

To add one to rota, write its file in this folder and add its line here. A scheduler is a frozen dataclass
whose fields are its options, with `needs` and `plan(view)` as in `rota.core.policy.Policy`. The contract
tests and the commands cover every scheduler in this table.
"""

from typing import Any

from rota.core.errors import ConfigError, unknown
from rota.core.registry import ClassContract, Registry, is_outside, name_of

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
    "gittins": "rota.policies.cluster.gittins:Gittins",
    "las": "rota.policies.cluster.las:Las",
    "random": "rota.policies.cluster.random:Random",
    "elastic": "rota.policies.cluster.elastic:Elastic",
    "lookahead": "rota.policies.cluster.lookahead:Lookahead",
    "learned": "rota.policies.cluster.learned:LearnedScheduler",
}
BY_DEFAULT = tuple(SCHEDULERS)[:10]
"""Schedulers that are compared if none is named: those of the Muri simulator."""

ALIASES = {
    "shortest": "srtf",
    "shortest-gpu": "srsf",
    "dlas-gpu": "tiresias",
    "multi-resource-blossom-same-gpu": "muri-s",
    "multi-resource-blossom-same-gpu-unaware": "muri-l",
    "multi-resource-blossom-same-gpu-unaware-worstordering": "muri-l-worst-order",
    "multi-resource-gpu-unaware": "muri-l-no-blossom",
}
"""Names of schedulers in the Muri simulator."""


SEAM = ClassContract("scheduler", "rota.Scheduler", {"plan": ("view",)}, ("needs",))
"""Requirements on a scheduler class."""
REGISTRY = Registry(SEAM, SCHEDULERS)
own_name = REGISTRY.own_name


def canonical(name: str) -> str:
    """Return the name of a scheduler, given its name, an alias, or the location of its class."""
    if is_outside(name):
        return outside_name(scheduler_class(name), name)
    found = ALIASES.get(name, name)
    if found not in SCHEDULERS:
        raise ConfigError(unknown("scheduler", name, SCHEDULERS))
    return found


def scheduler_class(name: str) -> Any:
    """Return the class behind a name; only its own module is imported."""
    return REGISTRY.find(name if is_outside(name) else canonical(name))


def outside_name(found: type, where: str) -> str:
    """Return the name of a class outside the package. Raises ConfigError if it is taken."""
    name = name_of(found)
    if name in SCHEDULERS or name in ALIASES:
        raise ConfigError(
            f"{where}: is named {name!r}, like a scheduler of rota; give the class another name, or a `name`"
        )
    return name
