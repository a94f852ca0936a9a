"""Results as pandas frames."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rota.core.errors import ConfigError, unknown
from rota.core.population.events import (
    Assigned,
    Cloned,
    Event,
    Grown,
    Hyper,
    Idled,
    Joined,
    NodeFailed,
    Reported,
    Retired,
    Stopped,
    TrialFailed,
    TrialFinished,
)
from rota.core.timeline import EventKind, Timeline
from rota.results.jobs import GIVEN, LIVED, JobColumns, JobTimes
from rota.results.population.repetition import Repetition
from rota.results.timeline_pass import PLACED, Series

if TYPE_CHECKING:
    import pandas as pd


EVENTS = {
    EventKind.FINISHED: "finished",
    EventKind.ARRIVED: "arrived",
    EventKind.NODE_LOST: "node_lost",
    EventKind.NODE_JOINED: "node_joined",
    EventKind.PAUSED: "preempted",
    EventKind.STARTED: "started",
    EventKind.MOVED: "migrated",
    EventKind.PACED: "retimed",
    EventKind.FAILED: "failed",
    EventKind.ATTEMPT_FAILED: "attempt_failed",
    EventKind.ROLLED_BACK: "rolled_back",
    EventKind.RESIZED: "resized",
}
LEAVING = (EventKind.PAUSED, EventKind.FAILED, EventKind.ATTEMPT_FAILED)
"""Events by which a job leaves its slots with iterations left."""
SERIES = ("utilisation", "waiting", "running", "busy", "available")


def jobs_frame(jobs: JobColumns, times: JobTimes) -> "pd.DataFrame":
    """Return a row per job: what it was, and what became of it; all times in seconds."""
    import pandas as pd

    columns = {
        "model": pd.Categorical.from_codes(jobs.model, list(jobs.models)),
        **{name: getattr(jobs, name) for name in GIVEN},
        **{name: getattr(times, name) for name in LIVED},
    }
    return pd.DataFrame(columns, index=pd.Index(jobs.ids, name="id"))


def timeline_frame(timeline: Timeline, jobs: JobColumns) -> "pd.DataFrame":
    """Return a row per event, in the order in which they happened.

    `event` is arrived, started, migrated, resized, preempted, retimed (an iteration takes longer or shorter
    from now on), finished, attempt_failed (the job will try again), failed (it will not), rolled_back,
    node_lost or node_joined. `job` is the id of the job; `node` the number of the node, of events of nodes.
    `iteration_s` is how long an iteration takes from then on, `remaining` how many were left at a preemption
    or a failure, `lost` how many a job that was rolled back to its last checkpoint does again. `slots` is a
    tuple, of jobs that started, migrated or were resized.
    """
    import pandas as pd

    events = timeline.events
    kind, number = events["kind"], events["job"].astype(np.int64)
    is_node = np.isin(kind, (EventKind.NODE_LOST, EventKind.NODE_JOINED))
    has_pace = np.isin(kind, (*PLACED, EventKind.PACED))
    columns = {
        "at_s": events["at_s"].copy(),
        "event": pd.Categorical.from_codes(kind, [EVENTS[each] for each in EventKind]),
        "job": pd.Categorical.from_codes(np.where(is_node, -1, number), list(jobs.ids)),
        "node": pd.array(np.where(is_node, number, -1), "Int64"),
        "iteration_s": np.where(has_pace, events["value"], np.nan),
        "remaining": np.where(np.isin(kind, LEAVING), events["value"], np.nan),
        "lost": np.where(kind == EventKind.ROLLED_BACK, events["value"], np.nan),
        "slots": _slots(timeline, np.isin(kind, PLACED)),
    }
    frame = pd.DataFrame(columns)
    frame.loc[~is_node, "node"] = pd.NA
    return frame


def series_frame(series: Series) -> "pd.DataFrame":
    """Return how full the cluster was, a row per instant; each holds until the next.

    `utilisation` is busy ÷ available slots; `waiting` and `running` count jobs.
    """
    import pandas as pd

    with np.errstate(invalid="ignore"):
        utilisation = np.where(series.available > 0.0, series.busy / series.available, 0.0)
    columns = {"utilisation": utilisation, **{name: getattr(series, name).copy() for name in SERIES[1:]}}
    return pd.DataFrame(columns, index=pd.Index(series.at_s.copy(), name="at_s"))


def check_series(name: str) -> None:
    """Raise ConfigError if there is no series of this name."""
    if name not in SERIES:
        raise ConfigError(unknown("series", name, SERIES))


def _slots(timeline: Timeline, placed: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> list[tuple[int, ...]]:
    """Return the slots of each event; none unless a job was placed."""
    arena = timeline.slots.tolist()
    begins, gpus = timeline.events["begin"].tolist(), np.where(placed, timeline.events["gpus"], 0).tolist()
    return [tuple(arena[begin : begin + size]) for begin, size in zip(begins, gpus, strict=True)]


POPULATION_EVENTS = {
    Assigned: "assigned",
    Reported: "reported",
    Idled: "idle",
    Cloned: "cloned",
    Stopped: "stopped",
    TrialFinished: "finished",
    Retired: "retired",
    TrialFailed: "failed",
    NodeFailed: "node_lost",
    Joined: "node_joined",
    Grown: "grown",
}
OF_TRIALS = (Grown, Reported, Cloned, Stopped, TrialFinished, TrialFailed)
COLUMNS = ("slot", "trial", "steps", "metric", "donor")
"""Columns taken from events that have them."""


class SeedEvents(NamedTuple):
    """The events of one seed."""

    repetition: Repetition
    events: Sequence[Event]
    nodes: Sequence[str]
    """Slot → the name of its node."""
    sign: float = 1.0
    """What metrics of events are multiplied by: -1 where less is better."""


@dataclass(slots=True)
class _Trial:
    """One trial, event by event."""

    hyper: Hyper
    status: str = "waiting"
    steps: int = 0
    metric: float = math.nan
    best: float = math.nan
    node: str = ""
    clones: int = 0
    failures: int = 0
    training_s: float = 0.0
    error: str = ""
    changes: tuple[str, ...] = field(default=())

    def see(self, event: Event, nodes: Sequence[str]) -> None:
        match event:
            case Reported():
                self._report(event, nodes)
            case Cloned(trial=trial, donor=donor, hyper=hyper, changes=changes):
                self.hyper, self.changes = hyper, changes
                self.clones += donor != trial
            case Grown(change=change):
                self.changes = (*self.changes, change)
            case TrialFinished():
                self.status = "finished"
            case Stopped():
                self.status = "failed" if self.status == "retrying" else "stopped"
            case TrialFailed(why=why):
                self.failures += 1
                self.status, self.error = "retrying", why.strip().splitlines()[-1] if why.strip() else ""

    def _report(self, event: Reported, nodes: Sequence[str]) -> None:
        self.status = "waiting"
        self.steps += event.steps
        self.metric, self.node = event.metric, nodes[event.slot]
        self.training_s += event.ended_s - event.began_s - event.moved_s
        if not math.isnan(event.metric) and not event.metric <= self.best:
            self.best = event.metric

    def row(self, sign: float) -> dict[str, Any]:
        return {
            "status": "failed" if self.status == "retrying" else self.status,
            "steps": self.steps,
            "metric": sign * self.metric,
            "best_metric": sign * self.best,
            "node": self.node,
            "training_s": self.training_s,
            "clones": self.clones,
            "failures": self.failures,
            "changes": self.changes,
            "error": self.error,
            **{f"config.{name}": value for name, value in self.hyper.items()},
        }


def trials_frame(found: Iterable[SeedEvents]) -> "pd.DataFrame":
    """Return a row per seed and trial, which are its index.

    `status` is finished, stopped, failed or waiting (a run that was interrupted), `metric` what the trial
    reported last, `best_metric` the best that it ever reported, `node` where it was trained last,
    `training_s` how long in all, `clones` how often it went on as another trial, `error` the last line of
    its last failure, and `config.NAME` a hyper-parameter that it has now.
    """
    import pandas as pd

    rows: dict[tuple[int, int], dict[str, Any]] = {}
    for repetition, events, nodes, sign in found:
        trials = dict[int, _Trial]()
        for number, hyper in enumerate(repetition.began):
            trials[number] = _Trial(hyper)
        for event in events:
            if isinstance(event, OF_TRIALS):
                trials.setdefault(event.trial, _Trial({})).see(event, nodes)
        rows |= {(repetition.seed, number): trials[number].row(sign) for number in sorted(trials)}
    index = pd.MultiIndex.from_tuples(rows, names=["seed", "trial"])
    return pd.DataFrame(list(rows.values()), index=index)


def population_timeline_frame(found: Iterable[SeedEvents]) -> "pd.DataFrame":
    """Return a row per event, seed by seed, in the order in which they happened.

    `event` is assigned (a slot got `steps` steps of some trials), reported, idle, cloned, stopped, finished,
    retired, failed, node_lost or node_joined; `metric` is NaN where nothing was measured.
    """
    import pandas as pd

    rows = [
        {
            "seed": repetition.seed,
            "at_s": event.at_s,
            "event": POPULATION_EVENTS[type(event)],
            **{name: getattr(event, name, None) for name in COLUMNS},
            "metric": sign * getattr(event, "metric", math.nan),
            "node": _node(event, nodes),
        }
        for repetition, events, nodes, sign in found
        for event in events
    ]
    frame = pd.DataFrame(rows, columns=["seed", "at_s", "event", *COLUMNS, "node"])
    whole = dict.fromkeys(("slot", "trial", "steps", "donor"), "Int64")
    return frame.astype({**whole, "metric": float, "event": "category"})


def _node(event: Event, nodes: Sequence[str]) -> str | None:
    if isinstance(event, NodeFailed | Joined):
        return list(dict.fromkeys(nodes))[event.node]
    slot = getattr(event, "slot", None)
    return None if slot is None else nodes[slot]
