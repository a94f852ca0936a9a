"""Profiles: how long an iteration takes, and its stages, by model, batch size, device and gang size."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rota.core.errors import InputError
from rota.core.table import Table
from rota.recordings.folder import AGAIN, FACTS, Sheet, read_about, write_recording
from rota.recordings.provenance import Provenance

SHAPE = "profile"
ROWS = "profile.csv"
PACKED = "packed"
"""The placement of a gang on as few nodes as hold it."""

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
    """One measurement; what was not measured is NaN, or 0 for what is counted."""

    model: str
    batch_size: int
    """Examples per iteration, over the whole gang; 0 if the model has only one way to run."""
    device: str
    gang: int = 1
    iteration_s: float
    """The median of those measured."""
    load_s: float = math.nan
    compute_s: float = math.nan
    synchronise_s: float = math.nan
    spread_s: float = math.nan
    """From the first to the third quartile."""
    iterations: int = 0
    """How many were measured."""
    placement: str = PACKED
    beside: str = ""
    """The model that ran on the same devices at the same time; empty if it ran alone."""
    beside_batch_size: int = 0
    extra: Mapping[str, float] = field(default_factory=dict)
    """Whatever else was measured, by name."""

    @property
    def stages_s(self) -> tuple[float, float, float]:
        """Of loading, computing and synchronising."""
        return self.load_s, self.compute_s, self.synchronise_s


Key = tuple[str, int, str, int, str, str, int]


@dataclass(frozen=True)
class Profiles:
    """Measurements that were made together."""

    rows: tuple[Profile, ...]
    provenance: Provenance
    details: Mapping[str, Any] = field(default_factory=dict)
    """Anything else worth knowing: plain values."""

    @cached_property
    def _by_key(self) -> dict[Key, Profile]:
        """The first of equal ones."""
        return {_key(row): row for row in reversed(self.rows)}

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.model for row in self.rows))

    @property
    def devices(self) -> tuple[str, ...]:
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
        """Exactly this measurement, if it was made."""
        key = (model, batch_size, device, gang, placement, beside, beside_batch_size)
        return self._by_key.get(key)

    def alone(self, model: str, device: str, placement: str = PACKED) -> tuple[Profile, ...]:
        """All of a model on a device with nobody beside it, smaller gangs and batches first."""
        rows = [
            r
            for r in self.rows
            if (r.model, r.device, r.placement, r.beside) == (model, device, placement, "")
        ]
        return tuple(sorted(rows, key=lambda row: (row.gang, row.batch_size)))

    def iteration_s(
        self, model: str, batch_size: int, device: str, gang: int = 1, *, placement: str = PACKED
    ) -> float | None:
        """Seconds per iteration alone; None if the model was not measured on the device.

        A gang size not measured takes the next larger, else the largest. Between measured batch sizes it is
        linear; below the smallest as the smallest; above the largest in equal parts that fit.
        """
        rows = self.alone(model, device, placement)
        gangs = {row.gang for row in rows}
        size = min((each for each in gangs if each >= gang), default=max(gangs, default=None))
        measured = [row for row in rows if row.gang == size]
        if not measured:
            return None
        parts = max(math.ceil(batch_size / max(measured[-1].batch_size, 1)), 1) if batch_size else 1
        batches, times_s = [r.batch_size for r in measured], [r.iteration_s for r in measured]
        return parts * float(np.interp(batch_size / parts, batches, times_s))

    def together_s(
        self, one: tuple[str, int], other: tuple[str, int], device: str, gang: int = 1
    ) -> tuple[float, float] | None:
        """Seconds per iteration of two (model, batch size) on the same devices; None if not measured."""
        first = self.find(*one, device, gang, beside=other[0], beside_batch_size=other[1])
        second = self.find(*other, device, gang, beside=one[0], beside_batch_size=one[1])
        return (first.iteration_s, second.iteration_s) if first and second else None


def write_profiles(folder: Path, profiles: Profiles) -> None:
    """Write profiles, or replace those that are there."""
    extra = tuple(dict.fromkeys(name for row in profiles.rows for name in row.extra))
    wrong = [name for name in extra if name in COLUMNS]
    if wrong:
        raise InputError(f"profiles: {wrong[0]!r} is a column already; name what is extra differently")
    what = {
        "models": list(profiles.models),
        "devices": list(profiles.devices),
        "extra": list(extra),
        "details": dict(profiles.details),
    }
    rows = (
        (*(getattr(row, name) for name in COLUMNS), *(row.extra.get(name, math.nan) for name in extra))
        for row in profiles.rows
    )
    columns = COLUMNS | {name: unit_of(name) for name in extra}
    write_recording(folder, SHAPE, what, profiles.provenance, {ROWS: Sheet(columns, rows)})


def read_profiles(folder: Path) -> Profiles:
    """What was written."""
    about = read_about(folder, SHAPE)
    table = about.table(ROWS)
    try:
        rows = tuple(_rows(table, about.what["extra"]))
        return Profiles(rows, about.provenance, dict(about.what["details"]))
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / FACTS}: not the facts of profiles ({error}); {AGAIN}") from None


def unit_of(name: str) -> str:
    """What the end of a column's name says of its unit."""
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
