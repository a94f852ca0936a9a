"""Traces in a format of the user's own: a function of an open file that gives the jobs.

The function gives a table (a mapping, by the columns of `rota.workload.plain`) per job, as an iterable or as
a pandas DataFrame; or a whole `Workload`. What it takes besides the file are its options.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rota.core.errors import ConfigError, InputError, TraceError, unknown
from rota.core.outside import told
from rota.core.table import Table, open_table
from rota.workload.jobs import Workload
from rota.workload.measured import Measured
from rota.workload.plain import FIELDS, from_table

Reader = Callable[..., Any]
EXAMPLE = f"yield {{{', '.join(f'{name!r}: …' for name in FIELDS)}}} for each job"


def read_with(
    reader: Reader,
    path: Path,
    seed: int = 0,
    draw_models: bool = False,
    *,
    options: Mapping[str, Any] | None = None,
    measured: Measured | None = None,
    name: str = "",
) -> Workload:
    """Read a trace with a function of an open file; `name` is what errors call the function.

    The file is text, decompressed if need be; its bytes are in `file.buffer`.
    """
    name = name or getattr(reader, "__name__", type(reader).__name__)
    given = dict(options or {})
    _check(reader, given, name)
    with open_table(path) as file:
        try:
            found = reader(file, **given)
            if isinstance(found, Workload):
                return _whole(found, name, draw_models or bool(measured and measured.rows))
            rows = list(_rows(found, name))
        except (InputError, OSError, UnicodeDecodeError):
            raise
        except Exception as error:
            raise TraceError(f"{path}: {name}: {told(error, _file_of(reader))}") from error
    if not rows:
        raise TraceError(f"{path}: no jobs in it, says {name}")
    columns = {key: [_cell(row.get(key)) for row in rows] for key in _keys(rows)}
    table = Table(path, range(1, len(rows) + 1), columns, f"{name}: row")
    table.require(FIELDS)
    return from_table(table, seed, draw_models, measured)


def _check(reader: Any, options: Mapping[str, Any], name: str) -> None:
    """Raise an error that says what is missing if it cannot be called with a file and these options."""
    if not callable(reader):
        raise ConfigError(f"{name}: is not a function, but {type(reader).__name__}; name a function")
    try:
        signature = inspect.signature(reader)
    except (TypeError, ValueError):  # built in: it does not say
        return
    known = [each.name for each in list(signature.parameters.values())[1:]]
    takes_any = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
    for option in options:
        if option not in known and not takes_any:
            raise ConfigError(f"{name}: {unknown('option', option, known)}")
    try:
        signature.bind(None, **options)
    except TypeError as error:
        raise ConfigError(
            f"{name}: cannot be called with an open file ({error}); write def {name.rpartition(':')[2]}(file)"
        ) from None


def _whole(found: Workload, name: str, says_more: bool) -> Workload:
    """A workload has all that could be drawn or measured."""
    if says_more:
        raise ConfigError(
            f"{name}: gives a Workload, which says how long its jobs take; leave out draw_models and profiles"
        )
    return found


def _rows(found: Any, name: str) -> Iterable[Mapping[str, Any]]:
    """What a reader gave, a row at a time."""
    if hasattr(found, "to_dict") and not isinstance(found, Mapping):
        found = found.to_dict("records")
    if isinstance(found, Mapping | str | bytes) or not isinstance(found, Iterable):
        raise TraceError(f"{name}: gave a {type(found).__name__}; {EXAMPLE}, or return a rota.Workload")
    for number, row in enumerate(found, 1):
        if not isinstance(row, Mapping):
            raise TraceError(f"{name}: row {number} is a {type(row).__name__}; {EXAMPLE}")
        yield row


def _keys(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(key) for row in rows for key in row))


def _cell(value: Any) -> str:
    """A value as a CSV says it; None and NaN are nothing, and several are joined by bars."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return "|".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _file_of(reader: Any) -> Path | None:
    code = getattr(reader, "__code__", None)
    return Path(code.co_filename) if code else None
