"""Applications measured by the Pollux project (OSDI '21): step times, and how training went.

A folder per application:
* `placements.csv` (`placement,local_bsz,step_time,sync_time`): up to 16 GPUs; a digit per node;
* `scalability.csv` (`num_nodes,num_replicas,local_bsz,step_time,sync_time`): larger ones;
* `validation-<batch>.csv` (`progress,iteration,…`): a whole training run at that batch size.

A gang is *packed* on as few 4-GPU nodes as hold it: only such placements say how fast a job is. As
recordings, profiles and curves, all are kept.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rota.core.arrays import Floats
from rota.core.errors import TraceError
from rota.core.table import Table, read_table
from rota.recordings.curve import CurvePoint, Curves, CurveSetting, read_curves
from rota.recordings.folder import Provenance, complete, is_file
from rota.recordings.profile import PACKED, Profile, Profiles, nearest_gang, read_profiles

GPUS_PER_NODE = 4

PROFILES, CURVES = "profiles", "curves"
"""Folders of imported recordings, in the application's folder."""

PLACEMENT_FIELDS = ("placement", "local_bsz", "step_time", "sync_time")
SCALABILITY_FIELDS = ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")


@dataclass(frozen=True, slots=True)
class StepTimeCurve:
    """Step times of one gang over the batch size of each GPU."""

    local_batch: Floats
    step_s: Floats
    sync_s: Floats
    """Seconds of the step that synchronise."""

    def at(self, local_batch: float) -> tuple[float, float]:
        """Return step and synchronise seconds: linear between measurements, constant below the smallest.

        A batch above the largest is accumulated in equal parts that fit, with one synchronisation.
        """
        parts = max(math.ceil(local_batch / self.local_batch[-1]), 1)
        step_s = float(np.interp(local_batch / parts, self.local_batch, self.step_s))
        sync_s = float(np.interp(local_batch / parts, self.local_batch, self.sync_s))
        return (parts - 1) * (step_s - sync_s) + step_s, sync_s


@dataclass(frozen=True, slots=True)
class Application:
    """The measurements of one application."""

    curves: Mapping[int, StepTimeCurve]
    """Gang size → step times, ascending."""
    iterations: Mapping[int, int]
    """Batch size → iterations of a whole training run."""

    def measured_gang(self, gpus: int) -> int:
        """Return the measured gang size that stands for this one."""
        return nearest_gang(gpus, self.curves)

    def measured_batch(self, batch: int) -> int:
        """Return the measured batch size that stands for this one: the nearest by ratio."""
        return min(self.iterations, key=lambda measured: abs(math.log(measured / batch)))

    def iteration_s(self, gpus: int, batch: int) -> tuple[float, float]:
        """Return seconds per iteration, and those of it that synchronise."""
        return self.curves[self.measured_gang(gpus)].at(batch / gpus)


class MeasuredStep(NamedTuple):
    """One line of placements.csv or scalability.csv."""

    placement: str
    gpus: int
    local_batch: float
    step_s: float
    sync_s: float


def is_application(folder: Path) -> bool:
    """Return whether a folder has measurements of an application, as published or imported."""
    return is_file(folder / "placements.csv") or complete(folder / PROFILES)


def applications(folder: Path) -> list[Path]:
    """Return the folder itself if it is an application as published, else those in it."""
    if (folder / "placements.csv").is_file():
        return [folder]
    found = sorted(each.parent for each in folder.glob("*/placements.csv"))
    if not found:
        raise TraceError(
            f"{folder}: no placements.csv in it or in a folder below; give an application's folder"
        )
    return found


def read_application(folder: Path) -> Application:
    """Return an application's step times when packed, and its iterations."""
    if not (folder / "placements.csv").is_file() and complete(folder / PROFILES):
        return _from_recordings(folder)
    iterations = {batch: int(table.wholes("iteration")[-1]) + 1 for batch, table in _validations(folder)}
    return _application(folder, _steps(folder), iterations)


def as_profiles(folder: Path, device: str, provenance: Provenance) -> Profiles:
    """Return the step times as profiles; loading and computing were not measured separately."""
    rows = (
        Profile(
            model=folder.resolve().name,
            batch_size=round(step.local_batch * step.gpus),
            device=device,
            gang=step.gpus,
            placement=step.placement,
            iteration_s=step.step_s,
            synchronise_s=step.sync_s,
            extra={"local_batch": step.local_batch},
        )
        for step in _steps(folder)
    )
    return Profiles(tuple(rows), provenance)


def as_curves(folder: Path, device: str, provenance: Provenance) -> Curves:
    """Return the training runs as curves, a setting per batch size; their durations were not measured."""
    settings = {}
    names: dict[str, None] = {}
    for batch, table in _validations(folder):
        given = sorted(table.columns, key=lambda name: name != "metric")  # what counts first
        metrics = {name: table.floats(name).tolist() for name in given if name != "iteration"}
        names |= dict.fromkeys(metrics)
        rows = (dict(zip(metrics, row, strict=True)) for row in zip(*metrics.values(), strict=True))
        steps = (int(iteration) + 1 for iteration in table.wholes("iteration"))
        intervals = [
            CurvePoint(number, at, math.nan, row)
            for number, (at, row) in enumerate(zip(steps, rows, strict=True))
        ]
        setting = CurveSetting.of(f"batch-{batch}", {"batch_size": batch}, device, 0, intervals)
        settings[setting.name] = setting
    return Curves(folder.resolve().name, "", ("batch_size",), 0, settings, provenance, metrics=tuple(names))


def _from_recordings(folder: Path) -> Application:
    """Return the application that profiles and curves were imported from."""
    profiles, curves = read_profiles(folder / PROFILES), read_curves(folder / CURVES)
    try:
        steps = [
            MeasuredStep(
                row.placement, row.gang, row.extra["local_batch"], row.iteration_s, row.synchronise_s
            )
            for row in profiles.rows
        ]
        runs = curves.settings.values()
        iterations = {int(run.hyper["batch_size"]): int(run.steps[-1]) for run in runs}
    except KeyError as error:
        raise TraceError(
            f"{folder}: its {PROFILES} and {CURVES} have no {error}, so they are not of an application; "
            "make them with: rota recordings import-pollux"
        ) from None
    return _application(Path(curves.model), steps, iterations)


def packed(gpus: int) -> str:
    """Return the placement on as few nodes as possible, digits ascending: `24` for 6 GPUs."""
    rest = gpus % GPUS_PER_NODE
    return (str(rest) if rest else "") + str(GPUS_PER_NODE) * (gpus // GPUS_PER_NODE)


def _application(folder: Path, steps: Iterable[MeasuredStep], iterations: Mapping[int, int]) -> Application:
    points: dict[int, dict[float, tuple[float, float]]] = {}
    for step in steps:
        if step.placement == PACKED:
            points.setdefault(step.gpus, {}).setdefault(step.local_batch, (step.step_s, step.sync_s))
    if not points:
        raise TraceError(f"{folder}: no packed placement is measured in placements.csv or scalability.csv")
    return Application({gpus: _curve(points[gpus]) for gpus in sorted(points)}, iterations)


def _steps(folder: Path) -> Iterator[MeasuredStep]:
    """Yield the step times of both files."""
    table = read_table(folder / "placements.csv", PLACEMENT_FIELDS)
    places = table.texts("placement")
    for row, place in enumerate(places):
        if not place.isdecimal() or "0" in place:
            raise table.wrong("placement", row, "digits from 1 to 9, the GPUs on each node")
    for place, times in zip(places, _times(table), strict=True):
        gpus = sum(map(int, place))
        yield MeasuredStep(PACKED if "".join(sorted(place)) == packed(gpus) else place, gpus, *times)
    if (folder / "scalability.csv").exists():
        table = read_table(folder / "scalability.csv", SCALABILITY_FIELDS)
        sizes = (table.wholes(name, at_least=1).tolist() for name in ("num_nodes", "num_replicas"))
        for nodes, gpus, times in zip(*sizes, _times(table), strict=True):
            fewest = nodes == math.ceil(gpus / GPUS_PER_NODE)
            yield MeasuredStep(PACKED if fewest else f"{nodes:.0f} nodes", int(gpus), *times)


def _times(table: Table) -> Iterator[tuple[float, float, float]]:
    """Yield the batch size of each GPU, and the seconds of a step and of its synchronisation."""
    columns = (table.positives("local_bsz"), table.positives("step_time"), table.numbers("sync_time"))
    return zip(*(column.tolist() for column in columns), strict=True)


def _validations(folder: Path) -> list[tuple[int, Table]]:
    """Return each training run, smaller batches first."""
    found = []
    for path in folder.glob("validation-*.csv"):
        batch = path.stem.removeprefix("validation-")
        if batch.isdecimal() and int(batch) > 0:
            table = read_table(path, ("iteration",))
            if not len(table):
                raise TraceError(f"{path}: no rows after the header; expected one per validation")
            found.append((int(batch), table))
    if not found:
        raise TraceError(
            f"{folder}: no validation-<batch size>.csv in it, which says how long training takes"
        )
    return sorted(found, key=lambda run: run[0])


def _curve(points: Mapping[float, tuple[float, float]]) -> StepTimeCurve:
    batches = sorted(points)
    step_s, sync_s = (np.array([points[batch][which] for batch in batches]) for which in (0, 1))
    return StepTimeCurve(np.array(batches), step_s, np.minimum(sync_s, step_s))
