"""A real run of a population as a try of seconds: few trials, tiny batches, two steps."""

from collections.abc import Mapping
from typing import Any

from rota.config.bind import put
from rota.core.errors import ConfigError
from rota.library.real_run import NETWORK

TRIALS, STEPS, BATCHES, BATCH = 2, 2, [2.0, 4.0], 4
VALIDATION = 20
"""Images to validate with."""


def quick(table: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the table of a run as a try, and what is to be said about its data, if anything."""
    population = table.get("population", {})
    if not isinstance(population, Mapping):
        raise ConfigError("population is not a table")
    trials = population.get("trials", TRIALS)
    shorter = {"trials": min(trials, TRIALS) if isinstance(trials, int) else trials}
    shorter |= {"steps": STEPS, "interval": 1}
    found = put(dict(table), ("quick",), True)
    for key, value in shorter.items():
        found = put(found, ("population", key), value)
    for path in (("population", "start"), ("options", "pbt", "space")):
        if "batch_size" in _at(found, path):
            found = put(found, (*path, "batch_size"), {"values": BATCHES})
    if found.get("trial", NETWORK) != NETWORK:
        return found, ""
    data = _images(_at(found, ("training",)))
    if data is None:
        return found, ""
    found = put(found, ("training", "hyper", "batch_size"), BATCH)
    found = put(found, ("training", "validation"), VALIDATION)
    from rota.training.data import is_here

    if is_here(data):
        return found, ""
    said = f"{data} is not on this machine: images in its shape are generated (bash scripts/data.sh)"
    return put(found, ("training", "generated"), True), said


def _at(table: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    for name in path:
        inner = table.get(name, {})
        table = inner if isinstance(inner, Mapping) else {}
    return table


def _images(training: Mapping[str, Any]) -> str | None:
    """Return the data set of images that is trained with; None if it is of another kind or unknown."""
    from rota.training.data import NAMES
    from rota.training.models.registry import MODELS

    model, data = training.get("model", "convnet2"), training.get("data", "digits")
    known = model in MODELS and MODELS[model].task == "classification" and data in NAMES
    return str(data) if known else None
