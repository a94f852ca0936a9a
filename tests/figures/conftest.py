"""Small runs on disk, in groups."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from rota.core.cluster import Cluster
from rota.core.timeline import EVENT, EventKind, Timeline
from rota.figures.groups import RunGroup, groups
from rota.results.jobs import JobColumns
from rota.results.run import RunRecord, read_run, write_run

Row = tuple[float, EventKind, int, Sequence[int]]
ARRIVED, STARTED, FINISHED = EventKind.ARRIVED, EventKind.STARTED, EventKind.FINISHED


def timeline_of(*rows: Row) -> Timeline:
    """From (at_s, kind, job or node, slots)."""
    events = np.zeros(len(rows), EVENT)
    begin = 0
    for record, (at_s, kind, job, slots) in zip(events, rows, strict=True):
        record["at_s"], record["kind"], record["job"], record["value"] = at_s, kind, job, 1.0
        record["begin"], record["gpus"] = begin, len(slots)
        begin += len(slots)
    return Timeline(events, np.array([slot for row in rows for slot in row[3]], np.int32))


def jobs_of(*rows: tuple[float, float, float], models: Sequence[str], name: str = "by hand") -> JobColumns:
    """Jobs a, b, … from (submit_s, gpus, solo_s)."""
    submit_s, gpus, solo_s = np.array(rows, float).T
    known = tuple(dict.fromkeys(models))
    return JobColumns(
        name=name,
        ids=tuple("abcdefgh"[: len(rows)]),
        model=np.array([known.index(model) for model in models]),
        models=known,
        gpus=gpus,
        submit_s=submit_s,
        iterations=solo_s,
        iteration_s=np.ones(len(rows)),
    )


def one_after_the_other(jobs: JobColumns, order: Sequence[int]) -> Timeline:
    """All jobs arrive at 0 and run in this order, each on slot 0."""
    ends_s = np.cumsum([jobs.iterations[job] for job in order])
    rows: list[Row] = [(0.0, ARRIVED, job, ()) for job in range(len(jobs))]
    for job, end_s in zip(order, ends_s, strict=True):
        start_s = float(end_s - jobs.iterations[job])
        rows += [(start_s, STARTED, job, (0,)), (float(end_s), FINISHED, job, ())]
    kinds = {FINISHED: 0, ARRIVED: 1, STARTED: 2}
    return timeline_of(*sorted(rows, key=lambda row: (row[0], kinds[row[1]])))


@pytest.fixture(name="timeline_of")
def _timeline_of() -> Callable[..., Timeline]:
    return timeline_of


@pytest.fixture(name="jobs_of")
def _jobs_of() -> Callable[..., JobColumns]:
    return jobs_of


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunRecord]:
    """Gives a function that writes a run of three jobs (1 h, 2 h, 3 h) on one node and reads it back."""

    def make(
        folder: str, scheduler: str = "srtf", order: Sequence[int] = (0, 1, 2), **changes: object
    ) -> RunRecord:
        jobs = jobs_of((0, 1, 3600), (0, 1, 7200), (0, 1, 10800), models=("bert", "vgg16", "bert"))
        about = {
            "scheduler": scheduler,
            "workload": jobs,
            "cluster": Cluster.uniform(1, 2),
            "timeline": one_after_the_other(jobs, order),
            "config_text": "",
            "inputs": "digest",
            "wall_s": 1.0,
            "command": "rota simulate config/a.toml",
        }
        write_run(tmp_path / folder, **about | changes)
        return read_run(tmp_path / folder)

    return make


@pytest.fixture
def three(make_run: Callable[..., RunRecord]) -> RunGroup:
    """Shortest first, longest first, and an unknown scheduler that starts with the middle one."""
    runs = [make_run("x", "mine", (1, 0, 2)), make_run("s", "srtf"), make_run("f", "fifo", (2, 1, 0))]
    return groups(runs)[0]
