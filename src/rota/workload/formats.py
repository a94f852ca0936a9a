"""Trace formats by name; `module:function` and `path/to/file.py:function` name the user's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.core.errors import ConfigError, TraceError, unknown
from rota.core.files import held
from rota.core.limits import at_least
from rota.core.registry import find_function, is_outside

if TYPE_CHECKING:
    from rota.workload.jobs import Workload
    from rota.workload.plain import Reader
    from rota.workload.profiles import MeasuredTimes


FORMATS = {
    "csv": "rota.workload.plain:read",
    "muri": "rota.workload.public:read_muri",
    "philly": "rota.workload.public:read_philly",
    "azure": "rota.workload.public:read_azure",
    "gavel": "rota.workload.gavel:read",
    "pollux": "rota.workload.pollux:read",
    "helios": "rota.workload.public:read_helios",
    "alibaba": "rota.workload.public:read_alibaba",
}


def read(
    path: Path,
    name: "str | Reader | None" = None,
    seed: int = 0,
    draw_models: bool = False,
    *,
    options: Mapping[str, Any] | None = None,
    measured: "MeasuredTimes | None" = None,
) -> "Workload":
    """Read a trace; missing priorities are drawn from the seed, and models if asked for.

    The default format is guessed from the file. A function reads a format of one's own, given by name
    (`module:function`, `path/to/file.py:function`) or as it is, with `options`. With `measured` step times,
    the trace is in CSV or in such a format.
    """
    at_least(0, seed=seed)
    with held():
        if name is not None and (not isinstance(name, str) or is_outside(name)):
            reader, said = (find_function(name), name) if isinstance(name, str) else (name, "")
            from rota.workload.plain import read_with

            return read_with(reader, path, seed, draw_models, options=options, measured=measured, name=said)
        check_format(name, options)
        if measured is not None:
            from rota.workload.plain import read as read_plain

            return read_plain(path, seed, measured=measured)
        module, function = FORMATS[name or guess(path)].split(":")
        result: Workload = getattr(import_module(module), function)(path, seed, draw_models)
    return result


def check_format(name: Any, options: Mapping[str, Any] | None = None) -> None:
    """Raise unless there is such a format, with such options."""
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


@dataclass(frozen=True)
class TraceFormat:
    """A format, as recognised by a file's first line."""

    name: str
    fields: tuple[str, ...]
    """Columns that it must have."""
    has_header: bool

    @classmethod
    def named(cls, name: str) -> "TraceFormat":
        """Return a format of rota's own; its module says which `<NAME>_FIELDS` it has."""
        module = import_module(FORMATS[name].split(":")[0])
        return cls(name, getattr(module, f"{name.upper()}_FIELDS"), getattr(module, "HEADER", True))

    def fits(self, line: str) -> bool:
        """Return whether a first line has all fields as a header; without headers, as many fields."""
        if not self.has_header:
            return line.count("\t") == len(self.fields) - 1
        return _columns(line).issuperset(self.fields)


def guess(path: Path) -> str:
    """Return the name of the one format whose columns are all in the file's first line."""
    from rota.core.table import first_line

    line = first_line(path)
    if line.lstrip().startswith("["):
        return "philly"  # its log, in JSON
    formats = [TraceFormat.named(name) for name in FORMATS]
    fits = [each.name for each in formats if each.fits(line)]
    if len(fits) != 1:
        found = f"it fits {' and '.join(fits)}" if fits else _nearest(line, formats)
        raise TraceError(f"{path}: cannot tell its format: {found}. Give it: {', '.join(FORMATS)}")
    return fits[0]


def _nearest(line: str, formats: Sequence[TraceFormat]) -> str:
    """Return why no format fits: the columns missing in the closest one."""
    there = _columns(line)
    with_header = [each for each in formats if each.has_header]
    best = max(with_header, key=lambda each: len(there & set(each.fields)) / len(each.fields))
    missing = [field for field in best.fields if field not in there]
    if len(missing) == len(best.fields):
        return f"no format has a header like {line[:80]!r}"
    return f"for {best.name}, there is no column {', '.join(map(repr, missing))}; found {line[:80]!r}"


def _columns(line: str) -> set[str]:
    return {name.strip().strip('"') for name in line.split(",")}
