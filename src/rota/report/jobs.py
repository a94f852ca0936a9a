"""Sections of a report about runs of the same jobs on the same cluster."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rota.core.cluster import Cluster
from rota.core.timeline import EventKind
from rota.figures.groups import RunGroup
from rota.figures.jobs import JctCurve, LoadCurve, jct_curves, load_curves
from rota.report import blocks, verdict
from rota.report.blocks import Block, ChartAxis, ChartLine, Glance, Head, Section, TableCell, chart, table
from rota.report.timelines import PackedColumn, job_bars, packed, packed_names, rounded, thinned
from rota.report.verdict import is_real
from rota.results.jobs import JobColumns
from rota.results.metrics import FAILING, UNITS, Metrics, failing_cells, shows_failures

POINTS = 300
"""Largest number of points of a curve."""


def jobs_section(number: int, group: RunGroup, tick: Callable[[str], object] = lambda name: None) -> Section:
    """Return the section of a group of runs; `tick` gets the name of each run in progress."""
    curves = jct_curves(group)
    return Section(
        id=f"jobs-{number}",
        kind="schedulers",
        title=group.title + (", real run" if _is_real(group) else ""),
        about=_about(group),
        glance=glance(group),
        blocks=[
            comparison(group),
            timelines(group, tick),
            *([completion(curves)] if curves else []),
            *load(load_curves(group)),
        ],
        commands=group.commands,
    )


def _about(group: RunGroup) -> str:
    run = group.runs[0].run
    nodes, slots = len(run.cluster.nodes), run.cluster.slots
    count = len(group.runs)
    kinds = "" if run.cluster.kinds == ("gpu",) else f" ({', '.join(run.cluster.kinds)})"
    what = "one scheduler" if count == 1 else f"{count} schedulers on the same jobs"
    how = "Real run" if _is_real(group) else "Simulated"
    return f"{how}: {what}; {nodes:,} {'node' if nodes == 1 else 'nodes'} with {slots:,} slots{kinds}"


def _is_real(group: RunGroup) -> bool:
    return all(is_real(command) for command in group.commands)


def glance(group: RunGroup) -> Glance:
    """Return the scheduler with the least average completion time of finished jobs."""
    finished = [each for each in group.runs if each.run.metrics.failed < each.run.metrics.jobs]
    if not finished:
        first = group.runs[0]
        return Glance(first.label, blocks.scheduler(first.run.scheduler), "no job has finished")
    names = [each.label for each in finished]
    values = [each.run.metrics.avg_jct_s for each in finished]
    standings = verdict.Standings(names, values)
    metrics = finished[standings.best].run.metrics
    says = f"completes a job after {verdict.span(values[standings.best])} on average"
    says += "" if len(names) == 1 else ", the soonest of all"
    says += f"; {metrics.failed:,} of {metrics.jobs:,} jobs failed" if metrics.failed else ""
    return verdict.glance(standings, [blocks.scheduler(each.run.scheduler) for each in finished], says)


def comparison(group: RunGroup) -> Block:
    """Return the columns of the text table; times are in the unit that suits the longest average."""
    unit, unit_s = unit_of(each.run.metrics for each in group.runs)
    failed = _has_failed(group)
    failing = any(shows_failures(each.run.metrics) for each in group.runs)
    resized = any(each.run.metrics.resizes for each in group.runs)
    rows = [
        [
            TableCell(each.label, each.label),
            *metric_cells(each.run.metrics, each.run.wall_s, unit_s, failed=failed),
            *(_failing_cells(each.run.metrics) if failing else ()),
            *([TableCell(each.run.metrics.resizes, f"{each.run.metrics.resizes:,}")] * resized),
        ]
        for each in group.runs
    ]
    colours = [blocks.scheduler(each.run.scheduler) for each in group.runs]
    heads = [Head("scheduler"), *metric_heads(unit, real=_is_real(group), failed=failed)]
    heads += FAILING_HEADS if failing else []
    heads += [Head("resizes", "How often a gang became larger or smaller", "least")] * resized
    return table("Comparison", heads, rows, colours)


def unit_of(found: Iterable[Metrics]) -> tuple[str, float]:
    """Return the unit that suits the longest average, and its seconds."""
    longest_s = max(each.avg_jct_s for each in found)
    return next((each for each in UNITS if longest_s >= each[1]), UNITS[-1])


def metric_heads(unit: str, *, real: bool = False, failed: bool = False) -> list[Head]:
    """Return the columns of metrics."""
    return [
        Head(f"average JCT [{unit}]", "Job completion time, from submit to end: the mean", "least"),
        Head("median", "Half of the jobs complete within this time", "least"),
        Head("99th percentile", "All but one in a hundred jobs complete within this time", "least"),
        Head("makespan", "When the last job was complete, from the first submit on", "least"),
        Head("queueing", "How long a job waits, before its start and after each pause: the mean", "least"),
        Head("utilisation", "Busy slots, as a share of those that were there", "most"),
        Head("fairness", "Completion time by what a fair share would have allowed: the mean", "least"),
        Head("preemptions", "How often a job was paused and had to wait", "least"),
        *(
            [Head("failed", "Jobs that failed for good; JCT and fairness are of the others", "least")]
            * failed
        ),
        Head("run in [s]" if real else "simulated in [s]", "How long it took to make the run"),
    ]


FAILING_HEADS = [
    Head(FAILING[0], "How often a job failed, whether it was tried again or not", "least"),
    Head(FAILING[1], "Work done again from a checkpoint, and all work of jobs that failed for good", "least"),
    Head(FAILING[2], "What finished jobs needed alone, as a share of the GPU time that was there", "most"),
    Head(FAILING[3], "Slots that were there, as a share of all slots of the cluster", "most"),
]


def _failing_cells(m: Metrics) -> list[TableCell]:
    values = (m.failed_attempts, m.lost_gpu_s, m.goodput, m.availability)
    return [TableCell(value, text) for value, text in zip(values, failing_cells(m), strict=True)]


def _has_failed(group: RunGroup) -> bool:
    return any(each.run.metrics.failed for each in group.runs)


def metric_cells(m: Metrics, wall_s: float, unit_s: float, *, failed: bool = False) -> list[TableCell]:
    """Return the cells of those columns."""
    times_s = (m.avg_jct_s, m.p50_jct_s, m.p99_jct_s, m.makespan_s, m.queueing_s)
    return [
        *(TableCell(time_s, f"{time_s / unit_s:,.2f}") for time_s in times_s),
        TableCell(m.utilisation, f"{m.utilisation:.1%}"),
        TableCell(m.fairness_mean, f"{m.fairness_mean:.2f}"),
        TableCell(m.preemptions, f"{m.preemptions:,}"),
        *([TableCell(m.failed, f"{m.failed:,} of {m.jobs:,}")] * failed),
        TableCell(wall_s, f"{wall_s:.3f}"),
    ]


def completion(curves: list[JctCurve]) -> Block:
    """Return a chart of the share of finished jobs that are complete after each time."""
    lines = []
    for curve in curves:
        kept = thinned(len(curve.jct_s), POINTS)
        x, y = rounded(curve.jct_s[kept]), rounded(curve.share[kept])
        colour = blocks.scheduler(curve.scheduler)
        lines.append(ChartLine(curve.label, colour, [x[0], *x], [0, *y], curve.twin))
    return chart(
        "How long jobs take",
        ChartAxis("time from submit to end (logarithmic)", "time", log=True),
        ChartAxis("jobs that are complete by then", "share"),
        lines,
        steps=True,
        note="Further to the left is better: more jobs are complete sooner.",
    )


def load(curves: list[LoadCurve]) -> list[Block]:
    """Return charts of the queue length and of the busy slots."""
    time = ChartAxis("time since the first job", "time")
    return [
        chart("How many jobs wait", time, ChartAxis("waiting jobs"), _steps(curves, "waiting"), steps=True),
        chart(
            "How busy the slots are",
            time,
            ChartAxis("busy slots", "share"),
            _steps(curves, "utilisation"),
            steps=True,
            note="Means over intervals. A slot that jobs share counts once.",
        ),
    ]


def _steps(curves: list[LoadCurve], name: str) -> list[ChartLine]:
    return [
        ChartLine(
            curve.label,
            blocks.scheduler(curve.scheduler),
            rounded(curve.edges_s),
            [*rounded(values := getattr(curve, name), 4), *rounded(values[-1:], 4)],
            curve.twin,
        )
        for curve in curves
    ]


def timelines(group: RunGroup, tick: Callable[[str], object]) -> Block:
    """Return a timeline per run."""
    jobs, cluster = group.runs[0].run.jobs, group.runs[0].run.cluster
    runs = []
    for each in group.runs:
        tick(each.label)
        about = blocks.RULES.get(each.run.scheduler, "")
        runs.append({"name": each.label, "about": about, **job_bars(each.run)})
    return {
        "type": "timeline",
        "title": "What ran where, and when",
        "of": "jobs",
        "kinds": {kind.name.lower(): int(kind) for kind in EventKind},
        "nodes": nodes_of(cluster),
        "items": job_items(jobs),
        "palette": blocks.models(jobs.models),
        "legend": list(jobs.models),
        "runs": runs,
        "first": verdict.Standings([], [each.run.metrics.avg_jct_s for each in group.runs]).best,
    }


def nodes_of(cluster: Cluster) -> list[list[Any]]:
    """Return the name and the number of slots of each node."""
    several = len(cluster.kinds) > 1
    return [
        [f"node {number}" + (f" {node.kind}" if several else ""), node.slots]
        for number, node in enumerate(cluster.nodes)
    ]


def job_items(jobs: JobColumns) -> dict[str, Any]:
    """Return the columns of jobs that all schedulers share."""
    return {
        "ids": packed_names(jobs.ids),
        **packed(
            {
                "paint": PackedColumn(np.asarray(jobs.model)),
                "gpus": PackedColumn(np.asarray(jobs.gpus, np.float32)),
                "solo_s": PackedColumn((jobs.iterations * jobs.iteration_s).astype(np.float32)),
            }
        ),
    }
