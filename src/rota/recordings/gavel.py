"""Throughputs measured by the Gavel project (OSDI '20): jobs alone and in pairs, on several device kinds.

They are read from its JSON file, or from profiles imported from it. In the file: kind → "(job type, gang
size)" → "null" → steps/s alone; or → "(other type, gang size)" → [mine, the other's] when both share the
GPUs. A throughput of 0 means that it did not run there: it is dropped, as are pairs with one.
"""

import ast
import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from rota.core.errors import TraceError
from rota.core.files import parsed
from rota.recordings.folder import Provenance
from rota.recordings.profile import PACKED, Profile, Profiles, nearest_gang, read_profiles

Kind = str
JobType = tuple[str, int]
"""Name of a job type, and its gang size."""

REFERENCE = "v100"
SPREAD = "spread"
"""Placement of a gang with each GPU on another node."""
UNCONSOLIDATED = "_unconsolidated"
"""Suffix of a device kind on which gangs are spread."""
EXACT = "steps_per_s"
"""Column of the published number, as 1 / seconds would differ in the last bit."""


@dataclass(frozen=True, slots=True)
class Throughputs:
    """Throughputs in steps per second."""

    alone: Mapping[Kind, Mapping[JobType, float]]
    pairs: Mapping[Kind, Mapping[tuple[JobType, JobType], tuple[float, float]]] = field(default_factory=dict)
    """Throughputs of two jobs that share their GPUs: the first's and the second's."""

    def steps_per_s(self, name: str, gpus: int, kind: Kind = REFERENCE) -> float | None:
        """Return the throughput alone on one kind, at the gang size that stands for this one."""
        size = self.measured_gang(name, gpus, kind)
        return None if size is None else self.alone[kind][name, size]

    def measured_gang(self, name: str, gpus: int, kind: Kind = REFERENCE) -> int | None:
        """Return the measured gang size that stands for this one; None if the job type has none."""
        sizes = self._gangs(name, kind)
        return nearest_gang(gpus, sizes) if sizes else None

    def speed(self, name: str, kind: Kind) -> float | None:
        """Return the speed relative to the reference on one GPU, or else the mean over gang sizes."""
        sizes = set(self._gangs(name, kind)) & set(self._gangs(name, REFERENCE))
        ratios = [self.alone[kind][name, size] / self.alone[REFERENCE][name, size] for size in sorted(sizes)]
        if not ratios:
            return None
        return ratios[0] if 1 in sizes else math.fsum(ratios) / len(ratios)

    @property
    def devices(self) -> tuple[str, ...]:
        """The device kinds, whether gangs were spread or not."""
        return tuple(dict.fromkeys(kind.removesuffix(UNCONSOLIDATED) for kind in self.alone))

    def _gangs(self, name: str, kind: Kind) -> list[int]:
        return [size for other, size in self.alone.get(kind, {}) if other == name]


def read_throughputs(path: Path) -> Throughputs:
    """Return the measurements in a file or a recording, which must include the reference kind."""
    measured = from_profiles(read_profiles(path)) if path.is_dir() else read_throughputs_file(path)
    if REFERENCE not in measured.alone:
        found = ", ".join(measured.alone) or "nothing"
        raise TraceError(f"{path}: no measurements for {REFERENCE!r}; found {found}")
    return measured


def read_throughputs_file(path: Path) -> Throughputs:
    """Return the measurements in a file."""
    kinds = _object(path, _json(path), "the file")
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


def as_profiles(measured: Throughputs, provenance: Provenance) -> Profiles:
    """Return profiles with iteration times; stages and the number of measurements are not known."""
    rows: dict[tuple[Kind, JobType, JobType | None], Profile] = {}
    for kind, jobs in measured.alone.items():
        for job, steps in jobs.items():
            rows[kind, job, None] = _profile(kind, job, steps)
    for kind, pairs in measured.pairs.items():
        for (job, other), (mine, others) in pairs.items():
            rows[kind, job, other] = _profile(kind, job, mine, other)
            rows.setdefault((kind, other, job), _profile(kind, other, others, job))
    return Profiles(tuple(rows.values()), provenance)


def from_profiles(profiles: Profiles) -> Throughputs:
    """Return the measurements of jobs alone from imported profiles."""
    alone: dict[Kind, dict[JobType, float]] = {_kind(row): {} for row in profiles.rows}
    for row in profiles.rows:
        if not row.beside:
            alone[_kind(row)][job_name(row.model, row.batch_size), row.gang] = _steps_of(row)
    return Throughputs(alone)


def job_name(model: str, batch_size: int) -> str:
    """Return Gavel's name of a job type: `LM (batch size 5)`."""
    return f"{model} (batch size {batch_size})" if batch_size else model


def model_and_batch(name: str) -> tuple[str, int]:
    """Invert `job_name`; the batch size is 0 if the name has none."""
    found = re.fullmatch(r"(.+) \(batch size (\d+)\)", name)
    return (found[1], int(found[2])) if found else (name, 0)


def _profile(kind: Kind, job: JobType, steps: float, other: JobType | None = None) -> Profile:
    (name, gang), (beside, size) = job, other or ("", job[1])
    if size != gang:
        raise TraceError(f"{kind}: {job} with {other}: expected gangs of one size on the same devices")
    model, batch_size = model_and_batch(name)
    beside_model, beside_batch_size = model_and_batch(beside)
    return Profile(
        model=model,
        batch_size=batch_size,
        device=kind.removesuffix(UNCONSOLIDATED),
        gang=gang,
        placement=SPREAD if kind.endswith(UNCONSOLIDATED) else PACKED,
        beside=beside_model,
        beside_batch_size=beside_batch_size,
        iteration_s=1.0 / steps,
        extra={EXACT: steps},
    )


def _kind(row: Profile) -> Kind:
    return row.device + UNCONSOLIDATED if row.placement == SPREAD else row.device


def _steps_of(row: Profile) -> float:
    return row.extra.get(EXACT, 1.0 / row.iteration_s)


def _measurements(path: Path, kinds: dict[str, Any]) -> Iterator[tuple[Kind, JobType, JobType | None, Any]]:
    job_type = cache(partial(_job_type, path))
    for kind, jobs in kinds.items():
        for key, others in _object(path, jobs, kind).items():
            job = job_type(key)
            for other, value in _object(path, others, f"{kind}: {key}").items():
                yield kind, job, None if other == "null" else job_type(other), value


def _json(path: Path) -> Any:
    try:
        return parsed(path.read_text(encoding="utf-8"))
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
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0.0 <= value <= sys.float_info.max
    ):
        raise TraceError(f"{path}: {where}: {str(value)[:80]!r} is not a throughput in steps/s, 0 or more")
    return float(value)
