"""The adaptation policies by name. To add one: write its file in this folder, add its line here.

A policy has `probabilities(sight)`, as in `rota.core.sight.Adaptation`. The contract tests over this table
then cover it.
"""

from importlib import import_module
from typing import Any

from rota.core.errors import ConfigError, unknown

ADAPTATIONS = {
    "never": "rota.policies.adaptation.never:Never",
    "random": "rota.policies.adaptation.uniform:Uniform",
    "fixed": "rota.policies.adaptation.fixed:Fixed",
    "learned": "rota.learning.agent:Agent",
}
"""Name → its class, imported when it is asked for."""


def adaptation_class(name: str) -> Any:
    """The class behind a name; only its own module is imported."""
    if name not in ADAPTATIONS:
        raise ConfigError(unknown("adaptation policy", name, ADAPTATIONS))
    module, attribute = ADAPTATIONS[name].split(":")
    return getattr(import_module(module), attribute)
