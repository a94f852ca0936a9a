"""Applications measured by the Pollux project (OSDI '21): step times, and how long training takes.

A folder per application:
* `placements.csv` (`placement,local_bsz,step_time,sync_time`): up to 16 GPUs; a digit per node;
* `scalability.csv` (`num_nodes,num_replicas,local_bsz,step_time,sync_time`): larger ones;
* `validation-<batch>.csv` (`progress,iteration,…`): a whole training run at that batch size.

Only packed placements are used: a gang on as few 4-GPU nodes as hold it.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rota.core.errors import TraceError
from rota.workload.table import Floats, read_table

GPUS_PER_NODE = 4

PLACEMENT_FIELDS = ("placement", "local_bsz", "step_time", "sync_time")
SCALABILITY_FIELDS = ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")


@dataclass(frozen=True, slots=True)
class Curve:
    """Seconds per step of one gang, over the batch of each of its GPUs."""

    local_batch: Floats
    step_s: Floats
    sync_s: Floats
    """The part of the step that synchronises."""

    def at(self, local_batch: float) -> tuple[float, float]:
        """Step and synchronise seconds: linear between measurements, as the smallest below them.

        A batch above the largest is accumulated in equal parts that fit, synchronising once.
        """
        parts = max(math.ceil(local_batch / self.local_batch[-1]), 1)
        step_s = float(np.interp(local_batch / parts, self.local_batch, self.step_s))
        sync_s = float(np.interp(local_batch / parts, self.local_batch, self.sync_s))
        return (parts - 1) * (step_s - sync_s) + step_s, sync_s


@dataclass(frozen=True, slots=True)
class Application:
    """One application's measurements."""

    curves: Mapping[int, Curve]
    """By gang size, ascending."""
    iterations: Mapping[int, int]
    """Batch size → iterations of a whole training run."""

    def measured_gang(self, gpus: int) -> int:
        """The gang size whose measurement stands for this one: itself, the next larger, else the largest."""
        return min((size for size in self.curves if size >= gpus), default=max(self.curves))

    def measured_batch(self, batch: int) -> int:
        """The batch size whose training run stands for this one: the nearest by ratio."""
        return min(self.iterations, key=lambda measured: abs(math.log(measured / batch)))

    def iteration_s(self, gpus: int, batch: int) -> tuple[float, float]:
        """Seconds per iteration, and those of it that synchronise."""
        return self.curves[self.measured_gang(gpus)].at(batch / gpus)


def read_application(folder: Path) -> Application:
    points: dict[int, dict[float, tuple[float, float]]] = {}
    for gpus, local_batch, step_s, sync_s in (*_placements(folder), *_scalability(folder)):
        points.setdefault(gpus, {}).setdefault(local_batch, (step_s, sync_s))
    if not points:
        raise TraceError(f"{folder}: no packed placement is measured in placements.csv or scalability.csv")
    return Application({gpus: _curve(points[gpus]) for gpus in sorted(points)}, _validations(folder))


def packed(gpus: int) -> str:
    """The placement on as few nodes as possible, digits ascending: `24` for 6 GPUs."""
    rest = gpus % GPUS_PER_NODE
    return (str(rest) if rest else "") + str(GPUS_PER_NODE) * (gpus // GPUS_PER_NODE)


def _placements(folder: Path) -> Iterator[tuple[int, float, float, float]]:
    table = read_table(folder / "placements.csv", PLACEMENT_FIELDS)
    places = table.texts("placement")
    for row, place in enumerate(places):
        if not place.isdecimal() or "0" in place:
            raise table.wrong("placement", row, "digits from 1 to 9, the GPUs on each node")
    columns = (table.positives("local_bsz"), table.positives("step_time"), table.numbers("sync_time"))
    for place, local_batch, step_s, sync_s in zip(
        places, *(column.tolist() for column in columns), strict=True
    ):
        gpus = sum(map(int, place))
        if "".join(sorted(place)) == packed(gpus):
            yield gpus, local_batch, step_s, sync_s


def _scalability(folder: Path) -> Iterator[tuple[int, float, float, float]]:
    if not (folder / "scalability.csv").exists():
        return
    table = read_table(folder / "scalability.csv", SCALABILITY_FIELDS)
    columns = (
        table.wholes("num_nodes", at_least=1),
        table.wholes("num_replicas", at_least=1),
        table.positives("local_bsz"),
        table.positives("step_time"),
        table.numbers("sync_time"),
    )
    for nodes, gpus, local_batch, step_s, sync_s in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        if nodes == math.ceil(gpus / GPUS_PER_NODE):
            yield int(gpus), local_batch, step_s, sync_s


def _validations(folder: Path) -> dict[int, int]:
    iterations = {}
    for path in folder.glob("validation-*.csv"):
        batch = path.stem.removeprefix("validation-")
        if batch.isdecimal() and int(batch) > 0:
            table = read_table(path, ("iteration",))
            if not len(table):
                raise TraceError(f"{path}: no rows after the header; expected one per validation")
            iterations[int(batch)] = int(table.wholes("iteration")[-1]) + 1
    if not iterations:
        raise TraceError(
            f"{folder}: no validation-<batch size>.csv in it, which says how long training takes"
        )
    return dict(sorted(iterations.items()))


def _curve(points: Mapping[float, tuple[float, float]]) -> Curve:
    batches = sorted(points)
    step_s, sync_s = (np.array([points[batch][which] for batch in batches]) for which in (0, 1))
    return Curve(np.array(batches), step_s, np.minimum(sync_s, step_s))
