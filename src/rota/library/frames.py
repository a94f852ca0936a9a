"""Results as pandas frames."""

from typing import TYPE_CHECKING

import numpy as np

from rota.core.errors import ConfigError, unknown
from rota.core.events import Kind
from rota.core.timeline import Timeline
from rota.results.jobs import JobColumns, JobTimes
from rota.results.jobs_file import GIVEN, LIVED
from rota.results.series import Series

if TYPE_CHECKING:
    import pandas as pd

EVENTS = {
    Kind.FINISHED: "finished",
    Kind.ARRIVED: "arrived",
    Kind.NODE_LOST: "node_lost",
    Kind.NODE_JOINED: "node_joined",
    Kind.PAUSED: "preempted",
    Kind.STARTED: "started",
    Kind.MOVED: "migrated",
    Kind.PACED: "retimed",
    Kind.FAILED: "failed",
}
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

    `event` is arrived, started, migrated, preempted, retimed (an iteration takes longer or shorter from now
    on), finished, failed, node_lost or node_joined. `job` is the id of the job; `node` the number of the
    node, of events of nodes. `iteration_s` is how long an iteration takes from then on, `remaining` how many
    were left at a preemption or a failure. `slots` is a tuple, of jobs that started or migrated.
    """
    import pandas as pd

    events = timeline.events
    kind, number = events["kind"], events["job"].astype(np.int64)
    is_node = np.isin(kind, (Kind.NODE_LOST, Kind.NODE_JOINED))
    has_pace = np.isin(kind, (Kind.STARTED, Kind.MOVED, Kind.PACED))
    columns = {
        "at_s": events["at_s"].copy(),
        "event": pd.Categorical.from_codes(kind, [EVENTS[each] for each in Kind]),
        "job": pd.Categorical.from_codes(np.where(is_node, -1, number), list(jobs.ids)),
        "node": pd.array(np.where(is_node, number, -1), "Int64"),
        "iteration_s": np.where(has_pace, events["value"], np.nan),
        "remaining": np.where(np.isin(kind, (Kind.PAUSED, Kind.FAILED)), events["value"], np.nan),
        "slots": _slots(timeline, np.isin(kind, (Kind.STARTED, Kind.MOVED))),
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
    if name not in SERIES:
        raise ConfigError(unknown("series", name, SERIES))


def _slots(timeline: Timeline, placed: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> list[tuple[int, ...]]:
    """The slots of each event; none unless a job was put somewhere."""
    arena = timeline.slots.tolist()
    begins, gpus = timeline.events["begin"].tolist(), np.where(placed, timeline.events["gpus"], 0).tolist()
    return [tuple(arena[begin : begin + size]) for begin, size in zip(begins, gpus, strict=True)]
