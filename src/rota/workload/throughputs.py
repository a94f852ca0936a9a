"""Throughputs measured by the Gavel project (OSDI '20): jobs alone and in pairs, on several device kinds.

A JSON file: kind → "(job type, gang size)" → "null" → steps/s alone; or → "(other type, gang size)" → [mine,
the other's] when both share the GPUs. A throughput of 0 means that it did not run there: it is not kept, nor
is a pair of which one did not run.
"""

import ast
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from rota.core.errors import TraceError

Kind = str
JobType = tuple[str, int]
"""The name of a job type, and its gang size."""

REFERENCE = "v100"


@dataclass(frozen=True, slots=True)
class Throughputs:
    """Steps per second."""

    alone: Mapping[Kind, Mapping[JobType, float]]
    pairs: Mapping[Kind, Mapping[tuple[JobType, JobType], tuple[float, float]]]
    """Of two jobs that share their GPUs: the first's and the second's."""

    def steps_per_s(self, name: str, gpus: int, kind: Kind = REFERENCE) -> float | None:
        """Alone on one kind; a gang size not measured takes the next larger, else the largest."""
        size = self.measured_gang(name, gpus, kind)
        return None if size is None else self.alone[kind][name, size]

    def measured_gang(self, name: str, gpus: int, kind: Kind = REFERENCE) -> int | None:
        """The gang size whose measurement stands for this one; None if the job type has none."""
        sizes = self._gangs(name, kind)
        return min((size for size in sizes if size >= gpus), default=max(sizes, default=None))

    def speed(self, name: str, kind: Kind) -> float | None:
        """Relative to the reference: on one GPU if measured, else the mean over the gang sizes that were."""
        sizes = set(self._gangs(name, kind)) & set(self._gangs(name, REFERENCE))
        ratios = [self.alone[kind][name, size] / self.alone[REFERENCE][name, size] for size in sorted(sizes)]
        if not ratios:
            return None
        return ratios[0] if 1 in sizes else math.fsum(ratios) / len(ratios)

    def _gangs(self, name: str, kind: Kind) -> list[int]:
        return [size for other, size in self.alone.get(kind, {}) if other == name]


def read_throughputs(path: Path) -> Throughputs:
    """The measurements in a file; those of the reference kind must be there."""
    kinds = _object(path, _json(path), "the file")
    if REFERENCE not in kinds:
        raise TraceError(f"{path}: no measurements for {REFERENCE!r}; found {', '.join(kinds) or 'nothing'}")
    alone: dict[Kind, dict[JobType, float]] = {kind: {} for kind in kinds}
    pairs: dict[Kind, dict[tuple[JobType, JobType], tuple[float, float]]] = {kind: {} for kind in kinds}
    for kind, job, other, value in _measurements(path, kinds):
        where = f"{kind}: {job}: {other}"
        if other is None:
            alone[kind][job] = _steps(path, where, value)
        else:
            pairs[kind][job, other] = _pair(path, where, value)
    return Throughputs(
        {kind: {job: steps for job, steps in jobs.items() if steps > 0.0} for kind, jobs in alone.items()},
        {
            kind: {both: steps for both, steps in jobs.items() if min(steps) > 0.0}
            for kind, jobs in pairs.items()
        },
    )


def _measurements(path: Path, kinds: dict[str, Any]) -> Iterator[tuple[Kind, JobType, JobType | None, Any]]:
    job_type = cache(partial(_job_type, path))
    for kind, jobs in kinds.items():
        for key, others in _object(path, jobs, kind).items():
            job = job_type(key)
            for other, value in _object(path, others, f"{kind}: {key}").items():
                yield kind, job, None if other == "null" else job_type(other), value


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise TraceError(f"{path}: is not JSON: {error}") from None


def _object(path: Path, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TraceError(f"{path}: {where}: {str(value)[:80]!r} is not a JSON object")
    return value


def _job_type(path: Path, key: str) -> JobType:
    try:
        match ast.literal_eval(key):
            case (str(name), int(gpus)):
                return name, gpus
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        pass
    raise TraceError(f"{path}: {key[:80]!r} is not a job type and gang size like ('LM (batch size 5)', 1)")


def _pair(path: Path, where: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise TraceError(f"{path}: {where}: {str(value)[:80]!r} is not two throughputs")
    return _steps(path, where, value[0]), _steps(path, where, value[1])


def _steps(path: Path, where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
        raise TraceError(f"{path}: {where}: {str(value)[:80]!r} is not a throughput in steps/s, 0 or more")
    return float(value)
