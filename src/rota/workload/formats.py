"""The trace formats by name. To add one: write its reader in this folder, add its line here.

A reader is a module with `read(path, seed) -> Workload` and `FIELDS`, the columns it cannot do without; and
`HEADER = False` if its files do not name them.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from rota.core.errors import ConfigError, TraceError, unknown

if TYPE_CHECKING:
    from rota.workload.jobs import Workload

FORMATS = {
    "csv": "rota.workload.plain:read",
    "muri": "rota.workload.muri:read",
    "philly": "rota.workload.philly:read",
    "azure": "rota.workload.azure:read",
    "gavel": "rota.workload.gavel:read",
    "pollux": "rota.workload.pollux:read",
    "helios": "rota.workload.helios:read",
    "alibaba": "rota.workload.alibaba:read",
}


def read(path: Path, name: str | None = None, seed: int = 0) -> "Workload":
    """Read a trace; what it does not say is drawn from the seed and noted in the workload.

    Without the name of a format it is guessed from the file.
    """
    if seed < 0:
        raise ConfigError(f"seed is {seed}; it must be 0 or more")
    chosen = guess(path) if name is None else name
    if chosen not in FORMATS:
        raise ConfigError(unknown("trace format", chosen, FORMATS))
    module, function = FORMATS[chosen].split(":")
    result: Workload = getattr(import_module(module), function)(path, seed)
    return result


def guess(path: Path) -> str:
    """The one format whose columns are all in the file's first line."""
    from rota.core.table import first_line

    line = first_line(path)
    fits = [name for name in FORMATS if _fits(line, import_module(FORMATS[name].split(":")[0]))]
    if len(fits) != 1:
        found = f"it fits {' and '.join(fits)}" if fits else f"no format has a header like {line[:80]!r}"
        raise TraceError(f"{path}: cannot tell its format: {found}. Give it: {', '.join(FORMATS)}")
    return fits[0]


def _fits(line: str, reader: ModuleType) -> bool:
    """Whether a first line is a header with all the fields; or, without headers, has as many."""
    if not getattr(reader, "HEADER", True):
        return line.count("\t") == len(reader.FIELDS) - 1
    return {name.strip().strip('"') for name in line.split(",")}.issuperset(reader.FIELDS)
