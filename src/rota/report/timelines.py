"""Timelines of a report: bars as compact columns."""

import base64
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rota.core.arrays import Array, Floats
from rota.core.timeline import EventKind, Timeline
from rota.figures.gantt import Absence, GanttBlock, absences, blocks
from rota.results.run import RunRecord

TICKS = 1e8
"""Number of ticks of a time axis, down to a tenth of it: zooming in further is pointless."""


class PackedColumn(NamedTuple):
    """A column of integers from 0 on, or of floats."""

    values: Array
    sorted: bool = False
    """Whether to store differences, which are small where values hardly ever fall."""


@dataclass(frozen=True, slots=True)
class TickClock:
    """Seconds as integers: ticks since the beginning."""

    first_s: float
    tick_s: float

    @classmethod
    def over(cls, first_s: float, last_s: float) -> "TickClock":
        """Return a clock with ticks of 1, 10, 0.1 … seconds, fine enough for a span."""
        span_s = max(last_s - first_s, 1e-6)
        return cls(first_s, 10.0 ** math.ceil(math.log10(span_s / TICKS)))

    def ticks(self, at_s: ArrayLike) -> NDArray[np.int64]:
        """Return times in seconds as whole ticks since the first."""
        since_s = np.asarray(at_s, float) - self.first_s
        return np.maximum(np.rint(since_s / self.tick_s), 0).astype(np.int64)


def rounded(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """Return numbers with so many significant digits; None for NaN and infinities, as JSON has none."""
    return [number(value, digits) for value in values]


def number(value: float, digits: int = 5) -> float | None:
    """Return a number with so many significant digits; None for NaN and infinities."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short


def thinned(count: int, most: int) -> NDArray[np.int64]:
    """Return which of `count` points to keep: at most so many, evenly, with both ends."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, most)).round().astype(np.int64))


def packed(columns: Mapping[str, PackedColumn]) -> dict[str, Any]:
    """Return columns as text: name, type, length and whether they are differences, and all bytes."""
    heads, parts = [], []
    for name, (values, in_order) in columns.items():
        kept = _narrow(_differences(values) if in_order else np.asarray(values))
        heads.append([name, kept.dtype.str[1:], len(kept), int(in_order)])
        parts.append(kept.tobytes())
    return {"columns": heads, "bytes": _deflated(b"".join(parts))}


def packed_names(names: Iterable[str]) -> str:
    """Return names as text without markup."""
    return _deflated(json.dumps(list(names), separators=(",", ":")).encode())


def unpacked(found: Mapping[str, Any]) -> dict[str, Array]:
    """Return packed columns as arrays, as the page does."""
    data = zlib.decompress(base64.b64decode(found["bytes"]))
    columns: dict[str, Array] = {}
    for name, kind, count, in_order in found["columns"]:
        values = np.frombuffer(data, f"<{kind}", count)
        data = data[values.nbytes :]
        columns[name] = np.cumsum(_signed(values)) if in_order else values
    return columns


def _deflated(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


def _differences(values: Array) -> Array:
    """Return differences, with the sign in the last bit."""
    steps = np.diff(np.asarray(values, np.int64), prepend=0)
    return np.where(steps < 0, -2 * steps - 1, 2 * steps)


def _signed(values: Array) -> Floats:
    wide = values.astype(np.int64)
    signed: Floats = np.where(wide & 1, -(wide >> 1) - 1, wide >> 1)
    return signed


def _narrow(values: Array) -> Array:
    """Return values in the smallest type that has room, lowest byte first."""
    if values.dtype.kind == "f":
        return values.astype("<f4")
    most = int(values.max(initial=0))
    return values.astype("u1" if most < 2**8 else "<u2" if most < 2**16 else "<u4")


NODES = (EventKind.NODE_LOST, EventKind.NODE_JOINED)
OF_WORK = (EventKind.PAUSED, EventKind.FAILED, EventKind.ATTEMPT_FAILED, EventKind.ROLLED_BACK)
LEFT = 100.0
"""Factor from a share to percent, for work left."""


def job_bars(run: RunRecord) -> dict[str, Any]:
    """Return packed columns of a run.

    All times are positions in `instants`, which are in ticks since the first submit.

    A bar is a job on neighbouring slots, or on one of several equal parts of a shared slot. Events are
    ordered by job, as many of each as `events` says.
    """
    timeline = run.timeline()
    window_s = float(run.jobs.submit_s[0]), run.end_s
    clock = TickClock.over(*window_s)
    bars = blocks(timeline, run.cluster, window_s)
    away = absences(timeline, run.cluster, window_s)
    events = _events(timeline)
    edges = [[bar[:2] for bar in bars], [each[:2] for each in away]]
    ticks = [clock.ticks(np.array(each, float).reshape(-1, 2)) for each in edges]
    happened = clock.ticks(events["at_s"])
    instants = np.unique(np.concatenate([*(each.ravel() for each in ticks), happened]))
    columns = {"instants": PackedColumn(instants, sorted=True)}
    columns |= _bar_columns(bars, np.searchsorted(instants, ticks[0]), run.cluster.slots)
    columns |= away_columns(away, np.searchsorted(instants, ticks[1]))
    columns |= _event_columns(events, np.searchsorted(instants, happened), run)
    return {"tick_s": clock.tick_s, "bars": len(bars), **packed(columns)}


def _bar_columns(bars: list[GanttBlock], where: Array, slots: int) -> dict[str, PackedColumn]:
    _, _, job, slot, height, low, high = np.array(bars, float).reshape(-1, 7).T
    of = np.rint(1.0 / (high - low))
    return {
        "counts": PackedColumn(np.bincount(slot.astype(np.int64), minlength=slots)),
        "start": PackedColumn(where[:, 0], sorted=True),
        "length": PackedColumn(where[:, 1] - where[:, 0]),
        "item": PackedColumn(job.astype(np.int64)),
        "height": PackedColumn(height.astype(np.int64)),
        "place": PackedColumn(np.rint(low * of).astype(np.int64)),
        "of": PackedColumn(of.astype(np.int64)),
    }


def away_columns(away: Sequence[Absence], where: Array) -> dict[str, PackedColumn]:
    """Return columns of absences, whose starts and ends are at the positions in `where`."""
    return {
        "away_start": PackedColumn(where[:, 0]),
        "away_end": PackedColumn(where[:, 1]),
        "away_node": PackedColumn(np.array([each.node for each in away], np.int64)),
    }


def _events(timeline: Timeline) -> Array:
    found = timeline.events[~np.isin(timeline.events["kind"], NODES)]
    return found[np.argsort(found["job"], kind="stable")]


def _event_columns(events: Array, where: Array, run: RunRecord) -> dict[str, PackedColumn]:
    """Return columns of events: the value is the step time at a start, else the percentage left or lost."""
    left = LEFT * events["value"] / run.jobs.iterations[events["job"]]
    value = np.where(np.isin(events["kind"], OF_WORK), left, events["value"]).astype(np.float32)
    values, which = np.unique(value, return_inverse=True)
    return {
        "events": PackedColumn(np.bincount(events["job"], minlength=len(run.jobs))),
        "event_at": PackedColumn(where, sorted=True),
        "event_kind": PackedColumn(events["kind"].astype(np.int64)),
        "event_value": PackedColumn(which),
        "values": PackedColumn(values),
    }
