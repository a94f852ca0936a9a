"""A timeline as a file: one NumPy array per column, no pickles."""

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rota.core.errors import InputError
from rota.core.events import Kind
from rota.core.timeline import EVENT, Timeline
from rota.results.folder import AGAIN
from rota.results.sound import problem

COLUMNS = EVENT.names or ()


def write_timeline(stream: IO[bytes], timeline: Timeline) -> None:
    """Uncompressed: times are random bits to a compressor, and a large run should not wait for it.

    `kinds` names what the numbers in `kind` mean, so that the file outlives a change of the numbers.
    """
    columns: dict[str, Any] = {name: timeline.events[name] for name in COLUMNS}
    columns["kind"] = columns["kind"].astype(np.int8)
    columns["kinds"] = np.array([Kind(number).name for number in range(len(Kind))])
    np.savez(stream, slots=timeline.slots, **columns)


def read_timeline(path: Path, jobs: int, nodes: int, slots: int) -> Timeline:
    """Reads a timeline back, and makes sure that it speaks of so many jobs, nodes and slots only."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as columns:
            events = np.zeros(len(columns["at_s"]), EVENT)
            for name in COLUMNS:
                if np.iscomplexobj(columns[name]):
                    raise ValueError(f"{name} has complex numbers")
                events[name] = columns[name]
            events["kind"] = _numbers(columns["kinds"])[columns["kind"]]
            timeline = Timeline(events, columns["slots"].astype(np.int32))
    except FileNotFoundError:
        raise InputError(f"{path}: not there, though the run is complete; {AGAIN}") from None
    except (OSError, ValueError, TypeError, RuntimeError, LookupError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: not the timeline of a run ({error}); {AGAIN}") from None
    wrong = problem(timeline, jobs, nodes, slots)
    if wrong:
        raise InputError(f"{path}: {wrong}; {AGAIN}")
    return timeline


def _numbers(kinds: NDArray[np.str_]) -> NDArray[np.int32]:
    """What we call the kinds that a file has numbered; KeyError for one that we do not know."""
    return np.array([Kind[name] for name in kinds.tolist()], np.int32)
