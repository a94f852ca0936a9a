"""A timeline as a file: one NumPy array per column, no pickles."""

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from rota.core.errors import InputError
from rota.core.events import Kind
from rota.core.timeline import EVENT, Timeline
from rota.results.folder import AGAIN

COLUMNS = EVENT.names or ()


def write_timeline(stream: IO[bytes], timeline: Timeline) -> None:
    """Uncompressed: times are random bits to a compressor, and a large run should not wait for it."""
    columns: dict[str, Any] = {name: timeline.events[name] for name in COLUMNS}
    columns["kind"] = columns["kind"].astype(np.int8)
    np.savez(stream, slots=timeline.slots, **columns)


def read_timeline(path: Path, jobs: int, nodes: int, slots: int) -> Timeline:
    """Reads a timeline back, and makes sure that it speaks of so many jobs, nodes and slots only."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as columns:
            events = np.zeros(len(columns["at_s"]), EVENT)
            for name in COLUMNS:
                events[name] = columns[name]
            timeline = Timeline(events, columns["slots"].astype(np.int32))
    except FileNotFoundError:
        raise InputError(f"{path}: not there, though the run is complete; {AGAIN}") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: not the timeline of a run ({error}); {AGAIN}") from None
    problem = _problem(timeline, jobs, nodes, slots)
    if problem:
        raise InputError(f"{path}: {problem}; {AGAIN}")
    return timeline


def _problem(timeline: Timeline, jobs: int, nodes: int, slots: int) -> str | None:
    """The first thing that is wrong with a timeline, if any; kernels trust what passes."""
    events, kind = timeline.events, timeline.events["kind"]
    of_node = kind <= Kind.NODE_JOINED
    end = events["begin"] + events["gpus"]
    checks = {
        "has no events": len(events) == 0,
        "has events of unknown kinds": np.any((kind < min(Kind)) | (kind > max(Kind))),
        "names jobs that jobs.csv does not": np.any(
            (events["job"] < 0) | (~of_node & (events["job"] >= jobs))
        ),
        "names nodes that the cluster does not have": np.any(of_node & (events["job"] >= nodes)),
        "is not in order of time": not np.all(np.diff(events["at_s"]) >= 0.0),
        "has fewer slots than its events name": np.any(
            (events["gpus"] < 0) | (events["begin"] < 0) | (end > len(timeline.slots))
        ),
        "names slots that the cluster does not have": np.any(
            (timeline.slots < 0) | (timeline.slots >= slots)
        ),
    }
    return next((what for what, wrong in checks.items() if wrong), None)
