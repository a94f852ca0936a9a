"""Numbers for the page, as small as they can be: rounded in JSON, or packed as bytes."""

import base64
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rota.core.arrays import Array, Floats

TICKS = 1e8
"""A time axis has at least a tenth as many ticks: nobody zooms in further."""


class Column(NamedTuple):
    """Whole numbers from 0 on, or floats."""

    values: Array
    sorted: bool = False
    """Whether to keep differences: they are small where values hardly ever fall."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds as whole numbers of ticks since the beginning."""

    first_s: float
    tick_s: float

    @classmethod
    def over(cls, first_s: float, last_s: float) -> "Clock":
        """Ticks of 1, 10, 0.1 … seconds, fine enough for what lies in between."""
        span_s = max(last_s - first_s, 1e-6)
        return cls(first_s, 10.0 ** math.ceil(math.log10(span_s / TICKS)))

    def ticks(self, at_s: ArrayLike) -> NDArray[np.int64]:
        since_s = np.asarray(at_s, float) - self.first_s
        return np.maximum(np.rint(since_s / self.tick_s), 0).astype(np.int64)


def rounded(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """With so many significant digits; None where there is no number, which is what JSON has for it."""
    return [number(value, digits) for value in values]


def number(value: float, digits: int = 5) -> float | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short


def thinned(count: int, most: int) -> NDArray[np.int64]:
    """Which of so many points to keep: at most so many, evenly, with both ends."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, most)).round().astype(np.int64))


def packed(columns: Mapping[str, Column]) -> dict[str, Any]:
    """Columns as text: of each its name, type, length and whether it is differences, and all bytes behind."""
    heads, parts = [], []
    for name, (values, in_order) in columns.items():
        kept = _narrow(_differences(values) if in_order else np.asarray(values))
        heads.append([name, kept.dtype.str[1:], len(kept), int(in_order)])
        parts.append(kept.tobytes())
    return {"columns": heads, "bytes": _deflated(b"".join(parts))}


def packed_names(names: Iterable[str]) -> str:
    """Names as text without any markup, whatever they are."""
    return _deflated(json.dumps(list(names), separators=(",", ":")).encode())


def unpacked(found: Mapping[str, Any]) -> dict[str, Array]:
    """The columns again, as the page reads them."""
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
    """From one to the next, with the sign in the last bit."""
    steps = np.diff(np.asarray(values, np.int64), prepend=0)
    return np.where(steps < 0, -2 * steps - 1, 2 * steps)


def _signed(values: Array) -> Floats:
    wide = values.astype(np.int64)
    signed: Floats = np.where(wide & 1, -(wide >> 1) - 1, wide >> 1)
    return signed


def _narrow(values: Array) -> Array:
    """In the smallest type that has room, lowest byte first."""
    if values.dtype.kind == "f":
        return values.astype("<f4")
    most = int(values.max(initial=0))
    return values.astype("u1" if most < 2**8 else "<u2" if most < 2**16 else "<u4")
