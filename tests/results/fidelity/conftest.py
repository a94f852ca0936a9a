"""Timelines of two trials and of two jobs, written down by hand, and runs of them on disk."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from rota.core.cluster import Cluster
from rota.core.population.events import Assigned, Event, Joined, Reported, TrialFinished
from rota.core.timeline import EVENT, EventKind, Timeline
from rota.results.fidelity.aligned import PER_INTERVAL, TRIALS, AlignedTimeline, lives_of_trials
from rota.results.jobs import JobColumns
from rota.results.population.repetition import measure
from rota.results.population.run import write_population
from rota.results.population.summary import PopulationSummary, SlotInfo
from rota.results.run import write_run

CLUSTER = Cluster.of_speeds((1.0, 1.0))
Part = tuple[int, int, int, float, float, float]
Row = tuple[float, EventKind, int, float, Sequence[int]]

REAL: tuple[Part, ...] = (  # slot, trial, steps, began_s, ended_s, moved_s
    (0, 0, 50, 0.0, 10.0, 1.0),
    (1, 1, 50, 0.0, 12.0, 2.0),
    (0, 0, 50, 10.0, 20.0, 0.0),
    (1, 1, 50, 12.0, 22.0, 0.0),
)
SIMULATED: tuple[Part, ...] = (
    (0, 0, 50, 0.0, 11.0, 1.0),
    (1, 1, 50, 0.0, 11.0, 1.0),
    (1, 0, 50, 11.0, 21.0, 0.0),
    (0, 1, 50, 11.0, 23.0, 0.0),
)


def reports(*parts: Part) -> list[Event]:
    """All that happens when these parts are trained."""
    events: list[Event] = [Joined(0.0, 0), Joined(0.0, 1), Assigned(0.0, 0, 1, 50)]
    last: dict[int, Event] = {}
    for slot, trial, steps, began_s, ended_s, moved_s in sorted(parts, key=lambda part: part[4]):
        last[trial] = Reported(ended_s, slot, trial, steps, began_s, ended_s, moved_s, 0.5)
        events.append(last[trial])
    return events + [TrialFinished(event.at_s, trial) for trial, event in last.items()]


def write_trials(folder: Path, *parts: Part, allocation: str = "finish", seeds: Sequence[int] = (0,)) -> Path:
    events = reports(*parts)
    about = {"target": 1.0, "lower_bound_s": 1.0, "decisions": 4, "wall_s": 0.1}
    repetitions = tuple(measure(events, ({}, {}), CLUSTER, seed=seed, **about) for seed in seeds)
    slots = (SlotInfo("a", "cpu", 1.0), SlotInfo("b", "cpu", 1.0))
    summary = PopulationSummary(allocation, "none", "2 trials × 100 steps", "pair", None, slots, repetitions)
    said = {"config": "seeds = 1\n", "inputs": "digest", "command": "rota run x.toml"}
    write_population(folder, summary, dict.fromkeys(seeds, events), **said)
    return folder


def timeline(*rows: Row) -> Timeline:
    """From (at_s, kind, job, value, slots)."""
    events = np.zeros(len(rows), EVENT)
    slots: list[int] = []
    for record, (at_s, kind, job, value, on) in zip(events, rows, strict=True):
        record["at_s"], record["kind"], record["job"], record["value"] = at_s, kind, job, value
        record["begin"], record["gpus"] = len(slots), len(on)
        slots += on
    return Timeline(events, np.array(slots, np.int32))


def trials(*parts: Part) -> AlignedTimeline:
    return AlignedTimeline(TRIALS, PER_INTERVAL, lives_of_trials(reports(*parts)))


def write_jobs(folder: Path, *rows: Row, ids: tuple[str, ...] = ("a", "b"), scheduler: str = "srtf") -> Path:
    """Job a has 10 iterations and comes at 100 s, b has 4 and comes at 102 s; each takes 1 s on one slot."""
    jobs = JobColumns(
        name="by hand",
        ids=ids,
        model=np.zeros(2, np.int64),
        models=("bert",),
        gpus=np.ones(2),
        submit_s=np.array([100.0, 102.0]),
        iterations=np.array([10.0, 4.0]),
        iteration_s=np.ones(2),
    )
    write_run(
        folder, scheduler=scheduler, workload=jobs, cluster=Cluster.uniform(1, 1), timeline=timeline(*rows),
        config_text="", inputs="digest", wall_s=1.0, command="rota simulate x.toml",
    )  # fmt: skip
    return folder


PREEMPTED: tuple[Row, ...] = (  # b interrupts a after 2 of its iterations
    (100.0, EventKind.ARRIVED, 0, 0.0, ()),
    (100.0, EventKind.STARTED, 0, 1.0, (0,)),
    (102.0, EventKind.ARRIVED, 1, 0.0, ()),
    (102.0, EventKind.PAUSED, 0, 8.0, ()),
    (102.0, EventKind.STARTED, 1, 1.0, (0,)),
    (106.0, EventKind.FINISHED, 1, 0.0, ()),
    (106.0, EventKind.STARTED, 0, 1.0, (0,)),
    (114.0, EventKind.FINISHED, 0, 0.0, ()),
)
SLOWER: tuple[Row, ...] = (  # the same order, but two iterations took 2.5 s, four took 5 s and eight 10 s
    (100.0, EventKind.ARRIVED, 0, 0.0, ()),
    (100.0, EventKind.STARTED, 0, 1.0, (0,)),
    (102.0, EventKind.ARRIVED, 1, 0.0, ()),
    (102.5, EventKind.PAUSED, 0, 8.0, ()),
    (102.5, EventKind.STARTED, 1, 1.0, (0,)),
    (107.5, EventKind.FINISHED, 1, 0.0, ()),
    (107.5, EventKind.STARTED, 0, 1.0, (0,)),
    (117.5, EventKind.FINISHED, 0, 0.0, ()),
)


@pytest.fixture(scope="session")
def hand() -> ModuleType:
    """All of the above."""
    return sys.modules[__name__]
