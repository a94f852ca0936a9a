"""The trace formats by name. To add one: write its reader in this folder, add its line here."""

from importlib import import_module
from pathlib import Path

from rota.core.errors import ConfigError, unknown
from rota.workload.jobs import Workload

FORMATS = {
    "muri": "rota.workload.muri:read",
}


def read(path: Path, name: str, seed: int = 0) -> Workload:
    """Read a trace; what it does not say is drawn from the seed and noted in the workload."""
    if name not in FORMATS:
        raise ConfigError(unknown("trace format", name, FORMATS))
    module, function = FORMATS[name].split(":")
    result: Workload = getattr(import_module(module), function)(path, seed)
    return result
