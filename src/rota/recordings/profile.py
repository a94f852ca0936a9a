"""Profiles: iteration times and their stages, by model, batch size, device and gang size."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from rota.core.errors import InputError
from rota.core.table import Table
from rota.recordings.folder import CsvSheet, Provenance, read_about, write_recording

SHAPE = "profile"
ROWS = "profile.csv"
PACKED = "packed"
"""Placement of a gang on as few nodes as possible."""

COLUMNS = {
    "model": "",
    "batch_size": "examples",
    "device": "",
    "gang": "devices",
    "placement": "",
    "beside": "",
    "beside_batch_size": "examples",
    "load_s": "s",
    "compute_s": "s",
    "synchronise_s": "s",
    "iteration_s": "s",
    "spread_s": "s",
    "iterations": "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One measurement; what was not measured is NaN, or 0 for counts."""

    model: str
    batch_size: int
    """Examples per iteration, over the whole gang; 0 if the model has only one batch size."""
    device: str
    gang: int = 1
    iteration_s: float
    """Median of the measured iteration times."""
    load_s: float = math.nan
    compute_s: float = math.nan
    synchronise_s: float = math.nan
    spread_s: float = math.nan
    """Interquartile range of the iteration times."""
    iterations: int = 0
    """Number of measured iterations."""
    placement: str = PACKED
    beside: str = ""
    """Model that ran on the same devices at the same time; empty if it ran alone."""
    beside_batch_size: int = 0
    extra: Mapping[str, float] = field(default_factory=dict)
    """Further measurements by name."""

    @property
    def stages_s(self) -> tuple[float, float, float]:
        """Seconds of loading, computing and synchronising."""
        return self.load_s, self.compute_s, self.synchronise_s


Key = tuple[str, int, str, int, str, str, int]


@dataclass(frozen=True)
class Profiles:
    """Measurements that were made together."""

    rows: tuple[Profile, ...]
    provenance: Provenance
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further facts, as plain values."""

    @cached_property
    def _by_key(self) -> dict[Key, Profile]:
        """Key → the first profile with it."""
        return {_key(row): row for row in reversed(self.rows)}

    @property
    def models(self) -> tuple[str, ...]:
        """The models, in order of first appearance."""
        return tuple(dict.fromkeys(row.model for row in self.rows))

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices, in order of first appearance."""
        return tuple(dict.fromkeys(row.device for row in self.rows))

    def find(
        self,
        model: str,
        batch_size: int,
        device: str,
        gang: int = 1,
        *,
        placement: str = PACKED,
        beside: str = "",
        beside_batch_size: int = 0,
    ) -> Profile | None:
        """Return exactly this measurement, or None."""
        key = (model, batch_size, device, gang, placement, beside, beside_batch_size)
        return self._by_key.get(key)


def relative_speed(device: Profile, reference: Profile) -> float:
    """Return how many iterations a device makes while the reference makes one.

    Raises InputError if an iteration took no time.
    """
    ratio = math.nan
    if device.iteration_s > 0.0:
        ratio = reference.iteration_s / device.iteration_s
    if not 0.0 < ratio < math.inf:
        raise InputError(
            f"{device.model} took {reference.iteration_s:g} s per iteration on {reference.device} and "
            f"{device.iteration_s:g} s on {device.device}; expected two times above 0"
        )
    return ratio


def nearest_gang(gpus: float, measured: Collection[int]) -> int:
    """Return the measured gang size that stands for another: itself, the next larger, else the largest."""
    return min((size for size in measured if size >= gpus), default=max(measured))


def write_profiles(folder: Path, profiles: Profiles) -> None:
    """Write profiles or replace those that are there."""
    extra = tuple(dict.fromkeys(name for row in profiles.rows for name in row.extra))
    wrong = [name for name in extra if name in COLUMNS]
    if wrong:
        raise InputError(f"profiles: {wrong[0]!r} is a column already; name what is extra differently")
    details = {"details": dict(profiles.details)}
    what = {"models": profiles.models, "devices": profiles.devices, "extra": extra, **details}
    rows = (
        (*(getattr(row, name) for name in COLUMNS), *(row.extra.get(name, math.nan) for name in extra))
        for row in profiles.rows
    )
    columns = COLUMNS | {name: unit_of(name) for name in extra}
    write_recording(folder, SHAPE, what, profiles.provenance, {ROWS: CsvSheet(columns, rows)})


def read_profiles(folder: Path) -> Profiles:
    """Return the profiles in a folder."""
    about = read_about(folder, SHAPE)
    table, what = about.table(ROWS), about.facts(_ProfilesFacts)
    table.require([*COLUMNS, *what.extra])
    return Profiles(tuple(_rows(table, what.extra)), about.provenance, what.details)


def merged(recordings: Mapping[str, Profiles], provenance: Provenance) -> Profiles:
    """Return the measurements of several recordings, such as of several devices, as one.

    The details have the provenance of each, by its name. Raises InputError if two of them measured the same.
    """
    first: dict[Key, str] = {}
    for name, profiles in recordings.items():
        for row in profiles.rows:
            if _key(row) in first:
                pair = f" beside {row.beside}" if row.beside else ""
                raise InputError(
                    f"{name}: has {row.model} at batch size {row.batch_size} on {row.gang} × {row.device}"
                    f"{pair}, as {first[_key(row)]} has; leave one of them out"
                )
        first.update(dict.fromkeys(map(_key, profiles.rows), name))
    rows = tuple(row for profiles in recordings.values() for row in profiles.rows)
    origins = {name: profiles.provenance.to_json() for name, profiles in recordings.items()}
    return Profiles(rows, provenance, {"merged": origins})


@dataclass(frozen=True, slots=True)
class _ProfilesFacts:
    """The facts on profiles in `recording.json`."""

    models: tuple[str, ...]
    devices: tuple[str, ...]
    extra: tuple[str, ...]
    details: dict[str, object]


def unit_of(name: str) -> str:
    """Return the unit that a column's name ends with."""
    return "s" if name.endswith("_s") else ""


def _key(row: Profile) -> Key:
    return (
        row.model, row.batch_size, row.device, row.gang, row.placement, row.beside, row.beside_batch_size,
    )  # fmt: skip


def _rows(table: Table, extra: Iterable[str]) -> Iterable[Profile]:
    read: dict[type, Any] = {
        str: table.optional,
        int: lambda name: table.wholes(name).astype(int).tolist(),
        float: lambda name: table.floats(name).tolist(),
    }
    kinds = {each.name: each.type for each in fields(Profile)}
    columns = {name: read[kinds[name]](name) for name in COLUMNS}  # type: ignore[index]
    others = {name: table.floats(name).tolist() for name in extra}
    for row in range(len(table)):
        own = {name: column[row] for name, column in columns.items()}
        more = {name: column[row] for name, column in others.items() if not math.isnan(column[row])}
        yield Profile(**own, extra=more)
