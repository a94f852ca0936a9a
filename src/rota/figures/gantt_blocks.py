"""What a Gantt chart shows: blocks of slots and time in which one job runs, and nodes that are not there."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rota.core.cluster import Cluster
from rota.core.columns import UP
from rota.core.events import Kind
from rota.core.timeline import Timeline
from rota.figures.durations import HOUR_S, MINUTE_S
from rota.results.jobs import JobColumns
from rota.results.segments import Segments, segments

WINDOWS_S = (
    *(n * MINUTE_S for n in (1, 2, 5, 10, 20, 30)),
    *(n * HOUR_S for n in (1, 2, 3, 6, 12, 24, 36, 48, 72, 96, 120, 168, 336, 672)),
)
JOBS_IN_WINDOW = 40


class Block(NamedTuple):
    """A job on neighbouring slots of a node, or on its share of one slot."""

    start_s: float
    end_s: float
    job: int
    slot: int
    """The first one."""
    slots: int
    low: float
    high: float
    """Which part of the slot's height it gets; all of it unless others share the slot."""


class Absence(NamedTuple):
    """A node that is not there."""

    start_s: float
    end_s: float
    node: int


class Span(NamedTuple):
    """A job on a slot."""

    start_s: float
    end_s: float
    job: int


def default_window(jobs: JobColumns, end_s: float) -> tuple[float, float]:
    """The stretch with most arrivals, long enough for dozens of jobs, but not beyond the end of the run."""
    submit_s = jobs.submit_s
    gap_s = (submit_s[-1] - submit_s[0]) / len(submit_s)
    wanted_s = max(JOBS_IN_WINDOW * gap_s, 4 * float(np.median(jobs.iterations * jobs.iteration_s)))
    length_s = next((window_s for window_s in WINDOWS_S if window_s >= wanted_s), WINDOWS_S[-1])
    arrivals = np.searchsorted(submit_s, submit_s + length_s) - np.arange(len(submit_s))
    start_s = float(submit_s[np.argmax(arrivals)])
    return start_s, min(start_s + length_s, end_s)


def blocks(timeline: Timeline, cluster: Cluster, window_s: tuple[float, float]) -> list[Block]:
    """Everything that runs in the window, by slot and time."""
    spans = _spans(segments(timeline).between(*window_s), timeline, cluster.slots)
    pieces = [piece for slot in range(cluster.slots) for piece in _split(spans[slot], slot)]
    return _joined(pieces, cluster)


def absences(timeline: Timeline, cluster: Cluster, window_s: tuple[float, float]) -> list[Absence]:
    """When nodes are not there, within the window."""
    away_since_s = {int(node): window_s[0] for node in np.flatnonzero(cluster.table()[UP] == 0)}
    found = []
    changes = timeline.events[np.isin(timeline.events["kind"], (Kind.NODE_LOST, Kind.NODE_JOINED))]
    for at_s, node, kind in zip(
        changes["at_s"].tolist(), changes["job"].tolist(), changes["kind"].tolist(), strict=True
    ):
        if kind == Kind.NODE_LOST:
            away_since_s.setdefault(node, at_s)
        elif node in away_since_s:
            found.append(Absence(away_since_s.pop(node), at_s, node))
    found += [Absence(since_s, window_s[1], node) for node, since_s in away_since_s.items()]
    clipped = [Absence(max(a.start_s, window_s[0]), min(a.end_s, window_s[1]), a.node) for a in found]
    return [absence for absence in clipped if absence.end_s > absence.start_s]


def _spans(cut: Segments, timeline: Timeline, slots: int) -> list[list[Span]]:
    """The spans of each slot, by start."""
    spans: list[list[Span]] = [[] for _ in range(slots)]
    columns = (cut.start_s, cut.end_s, cut.job, cut.begin, cut.gpus)
    for start_s, end_s, job, begin, gpus in zip(*(column.tolist() for column in columns), strict=True):
        for slot in timeline.slots[begin : begin + gpus].tolist():
            spans[slot].append(Span(start_s, end_s, job))
    return spans


def _split(spans: list[Span], slot: int) -> list[Block]:
    """Cut the spans of a slot where its company changes, and share its height among those who are there.

    They are in the order of their numbers, so that a group looks the same on all of its slots.
    """
    pieces: list[Block] = []
    here: list[Span] = []
    coming = sorted(spans)
    for start_s, end_s in pairwise(sorted({edge_s for span in spans for edge_s in span[:2]})):
        here = [span for span in here if span.end_s > start_s]
        while coming and coming[0].start_s <= start_s:
            here.append(coming.pop(0))
        for place, span in enumerate(sorted(here, key=lambda span: span.job)):
            low, high = place / len(here), (place + 1) / len(here)
            pieces.append(Block(start_s, end_s, span.job, slot, 1, low, high))
    return _prolonged(pieces)


def _prolonged(pieces: list[Block]) -> list[Block]:
    """Put pieces of a slot together again that follow each other at the same height."""
    whole: dict[tuple[int, float, float, float], Block] = {}
    for piece in pieces:
        before = whole.pop((piece.job, piece.low, piece.high, piece.start_s), None)
        start_s = before.start_s if before else piece.start_s
        whole[piece.job, piece.low, piece.high, piece.end_s] = piece._replace(start_s=start_s)
    return list(whole.values())


def _joined(pieces: list[Block], cluster: Cluster) -> list[Block]:
    """Put the pieces of a gang together that lie side by side on a node."""
    nodes = cluster.slot_nodes().tolist()
    open_blocks: dict[tuple[float, float, int], Block] = {}
    done = []
    for piece in pieces:
        if piece.high - piece.low < 1.0:
            done.append(piece)
            continue
        key = (piece.start_s, piece.end_s, piece.job)
        block = open_blocks.pop(key, None)
        if block and block.slot + block.slots == piece.slot and nodes[block.slot] == nodes[piece.slot]:
            open_blocks[key] = block._replace(slots=block.slots + 1)
            continue
        if block:
            done.append(block)
        open_blocks[key] = piece
    return sorted(done + list(open_blocks.values()), key=lambda block: (block.slot, block.start_s, block.low))
