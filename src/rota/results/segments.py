"""Who was where, from when to when: stretches of a timeline in which a job kept its slots and its pace."""

from dataclasses import dataclass

import numpy as np

from rota.core.arrays import Floats, Ints
from rota.core.events import Kind
from rota.core.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Segments:
    """Columns over the segments, by start time."""

    job: Ints
    start_s: Floats
    end_s: Floats
    begin: Ints
    """Where its slots begin in the timeline's slots."""
    gpus: Ints
    pace_s: Floats
    """Seconds per iteration."""

    def __len__(self) -> int:
        return len(self.job)

    def between(self, start_s: float, end_s: float) -> "Segments":
        """What falls into a window, cut at its edges."""
        inside = (self.end_s > start_s) & (self.start_s < end_s)
        return Segments(
            self.job[inside],
            np.maximum(self.start_s[inside], start_s),
            np.minimum(self.end_s[inside], end_s),
            self.begin[inside],
            self.gpus[inside],
            self.pace_s[inside],
        )


def segments(timeline: Timeline, *, by_pace: bool = False) -> Segments:
    """The segments of a run, also cut where only the pace changes if asked for; none is empty.

    A segment ends with the next thing that happens to its job; one that is still open ends with the timeline.
    """
    events = timeline.events
    kinds = [Kind.STARTED, Kind.MOVED, Kind.PAUSED, Kind.FINISHED, Kind.FAILED]
    rows = np.flatnonzero(np.isin(events["kind"], [*kinds, Kind.PACED] if by_pace else kinds))
    rows = rows[np.argsort(events["job"][rows], kind="stable")]
    kind, job = events["kind"][rows], events["job"][rows].astype(np.int64)
    end_s = np.append(events["at_s"][rows[1:]], 0.0)
    end_s[np.append(job[1:] != job[:-1], True)] = events["at_s"][-1] if len(events) else 0.0
    placed = (kind == Kind.STARTED) | (kind == Kind.MOVED)
    last_placed = np.maximum.accumulate(np.where(placed, np.arange(len(rows)), 0))
    runs = (placed | (kind == Kind.PACED)) & (end_s > events["at_s"][rows])
    chosen = np.flatnonzero(runs)[np.argsort(rows[runs])]
    where = rows[last_placed[chosen]]
    return Segments(
        job[chosen],
        events["at_s"][rows[chosen]],
        end_s[chosen],
        events["begin"][where],
        events["gpus"][where].astype(np.int64),
        events["value"][rows[chosen]],
    )
