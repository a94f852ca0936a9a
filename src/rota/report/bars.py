"""The timeline of a run of jobs: bars on slots, nodes that are away, and what happened to each job."""

from typing import Any

import numpy as np

from rota.core.arrays import Array
from rota.core.events import Kind
from rota.core.timeline import Timeline
from rota.figures.gantt_blocks import Absence, Block, absences, blocks
from rota.report.compact import Clock, Column, packed
from rota.results.run import Run

NODES = (Kind.NODE_LOST, Kind.NODE_JOINED)
LEFT = 100.0
"""Work that is left is told in percent."""


def job_bars(run: Run) -> dict[str, Any]:
    """Columns for the page. All times are positions in `instants`, which are in ticks since the first submit.

    A bar is a job on neighbouring slots, or on one of several equal parts of a slot that is shared.
    Events are those of the first job, then of the second …, as many as `events` says.
    """
    timeline = run.timeline()
    window_s = float(run.jobs.submit_s[0]), run.end_s
    clock = Clock.over(*window_s)
    bars = blocks(timeline, run.cluster, window_s)
    away = absences(timeline, run.cluster, window_s)
    events = _events(timeline)
    edges = [[bar[:2] for bar in bars], [each[:2] for each in away]]
    ticks = [clock.ticks(np.array(each, float).reshape(-1, 2)) for each in edges]
    happened = clock.ticks(events["at_s"])
    instants = np.unique(np.concatenate([*(each.ravel() for each in ticks), happened]))
    columns = {"instants": Column(instants, sorted=True)}
    columns |= _bar_columns(bars, np.searchsorted(instants, ticks[0]), run.cluster.slots)
    columns |= _away_columns(away, np.searchsorted(instants, ticks[1]))
    columns |= _event_columns(events, np.searchsorted(instants, happened), run)
    return {"tick_s": clock.tick_s, "bars": len(bars), **packed(columns)}


def _bar_columns(bars: list[Block], where: Array, slots: int) -> dict[str, Column]:
    """By slot and start."""
    _, _, job, slot, height, low, high = np.array(bars, float).reshape(-1, 7).T
    of = np.rint(1.0 / (high - low))
    return {
        "counts": Column(np.bincount(slot.astype(np.int64), minlength=slots)),
        "start": Column(where[:, 0], sorted=True),
        "length": Column(where[:, 1] - where[:, 0]),
        "item": Column(job.astype(np.int64)),
        "height": Column(height.astype(np.int64)),
        "place": Column(np.rint(low * of).astype(np.int64)),
        "of": Column(of.astype(np.int64)),
    }


def _away_columns(away: list[Absence], where: Array) -> dict[str, Column]:
    return {
        "away_start": Column(where[:, 0]),
        "away_end": Column(where[:, 1]),
        "away_node": Column(np.array([each.node for each in away], np.int64)),
    }


def _events(timeline: Timeline) -> Array:
    """What happened to jobs, job by job."""
    found = timeline.events[~np.isin(timeline.events["kind"], NODES)]
    return found[np.argsort(found["job"], kind="stable")]


def _event_columns(events: Array, where: Array, run: Run) -> dict[str, Column]:
    """The value of an event is the pace at a start, and the work left, in percent, at a pause or failure."""
    left = LEFT * events["value"] / run.jobs.iterations[events["job"]]
    value = np.where(np.isin(events["kind"], (Kind.PAUSED, Kind.FAILED)), left, events["value"]).astype(
        np.float32
    )
    values, which = np.unique(value, return_inverse=True)
    return {
        "events": Column(np.bincount(events["job"], minlength=len(run.jobs))),
        "event_at": Column(where, sorted=True),
        "event_kind": Column(events["kind"].astype(np.int64)),
        "event_value": Column(which),
        "values": Column(values),
    }
