"""The trace formats by name; `module:function` and `path/to/file.py:function` name those of others.

To add one to rota: write its reader in this folder, add its line here.

A reader is a module with `read(path, seed, draw_models) -> Workload` and `FIELDS`, the columns it cannot do
without; and `HEADER = False` if its files do not name them.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rota.core.errors import ConfigError, TraceError, unknown
from rota.core.outside import find_function, is_outside
from rota.core.source import held

if TYPE_CHECKING:
    from rota.workload.jobs import Workload
    from rota.workload.measured import Measured
    from rota.workload.own_format import Reader

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


def read(
    path: Path,
    name: "str | Reader | None" = None,
    seed: int = 0,
    draw_models: bool = False,
    *,
    options: Mapping[str, Any] | None = None,
    measured: "Measured | None" = None,
) -> "Workload":
    """Read a trace; priorities that it does not say are drawn from the seed, and models if asked for.

    Without the name of a format it is guessed from the file. A function reads a format of one's own, by its
    name (`module:function`, `path/to/file.py:function`) or as it is, with `options`. If a recording was
    `measured`, the trace is in CSV or in such a format.
    """
    if seed < 0:
        raise ConfigError(f"seed is {seed}; it must be 0 or more")
    with held():
        if name is not None and (not isinstance(name, str) or is_outside(name)):
            from rota.workload.own_format import read_with

            reader, said = (find_function(name), name) if isinstance(name, str) else (name, "")
            return read_with(reader, path, seed, draw_models, options=options, measured=measured, name=said)
        check_format(name, options)
        if measured is not None:
            from rota.workload.plain import read as read_plain

            return read_plain(path, seed, measured=measured)
        module, function = FORMATS[name or guess(path)].split(":")
        result: Workload = getattr(import_module(module), function)(path, seed, draw_models)
    return result


def check_format(name: Any, options: Mapping[str, Any] | None = None) -> None:
    """Raise an error if there is no such format, or it has no such options."""
    if isinstance(name, str) and is_outside(name):
        return
    if name is not None and name not in FORMATS:
        own = "; or a function of yours: path/to/file.py:function"
        raise ConfigError(unknown("trace format", name, FORMATS) + own)
    if options:
        raise ConfigError(
            f"options: {', '.join(options)}: are for a function of yours, as format = "
            '"path/to/file.py:function"; leave them out'
        )


def guess(path: Path) -> str:
    """The one format whose columns are all in the file's first line."""
    from rota.core.table import first_line

    line = first_line(path)
    readers = {name: import_module(FORMATS[name].split(":")[0]) for name in FORMATS}
    fits = [name for name, reader in readers.items() if _fits(line, reader)]
    if len(fits) != 1:
        found = f"it fits {' and '.join(fits)}" if fits else _nearest(line, readers)
        raise TraceError(f"{path}: cannot tell its format: {found}. Give it: {', '.join(FORMATS)}")
    return fits[0]


def _nearest(line: str, readers: Mapping[str, ModuleType]) -> str:
    """Why no format fits: the columns that are missing in the one of which most are there."""
    shares = {
        name: len(_columns(line) & set(reader.FIELDS)) / len(reader.FIELDS)
        for name, reader in readers.items()
        if getattr(reader, "HEADER", True)
    }
    name = max(shares, key=shares.__getitem__)
    if not shares[name]:
        return f"no format has a header like {line[:80]!r}"
    missing = [field for field in readers[name].FIELDS if field not in _columns(line)]
    return f"for {name}, there is no column {', '.join(map(repr, missing))}; found {line[:80]!r}"


def _columns(line: str) -> set[str]:
    return {name.strip().strip('"') for name in line.split(",")}


def _fits(line: str, reader: ModuleType) -> bool:
    """Whether a first line is a header with all the fields; or, without headers, has as many."""
    if not getattr(reader, "HEADER", True):
        return line.count("\t") == len(reader.FIELDS) - 1
    return _columns(line).issuperset(reader.FIELDS)
