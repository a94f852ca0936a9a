"""Sections of a report about populations and their trials."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rota.core.arrays import Array
from rota.core.population.events import (
    Assigned,
    Cloned,
    Event,
    Grown,
    Reported,
    Stopped,
    TrialFinished,
)
from rota.figures.gantt import Absence
from rota.figures.population import (
    BEYOND,
    UNNAMED,
    AccuracyCurve,
    PopulationGroup,
    accuracy_curve,
    done_s,
    slot_names,
)
from rota.figures.population_gantt import LostWork, away, shading, undone
from rota.figures.trials import is_shown, trial_curves
from rota.report import blocks, verdict
from rota.report.blocks import (
    Block,
    ChartAxis,
    ChartLine,
    Glance,
    Head,
    Section,
    TableCell,
    chart,
    shares,
    table,
)
from rota.report.timelines import PackedColumn, TickClock, away_columns, packed, packed_names, rounded
from rota.report.verdict import is_real
from rota.results.population.metrics import SlotUse
from rota.results.population.run import PopulationRecord
from rota.results.population.summary import PopulationSummary, SlotInfo, on_common_ground

GOES_ON, CLONED, STOPPED, DONE, GREW = range(5)
"""What happened to a trial after an interval."""


def trial_bars(
    events: Sequence[Event],
    slots: Sequence[SlotInfo],
    end_s: float,
    *,
    measured: bool = True,
    sign: float = 1.0,
) -> dict[str, Any]:
    """Return packed columns. All times are positions in `instants`, which are in ticks since the beginning.

    A bar is coloured by its trial's metric at its end, or by its trial if nothing was measured. Metrics are
    multiplied by `sign` for display.
    """
    nodes = list(dict.fromkeys(slot.node for slot in slots))
    where = [nodes.index(slot.node) for slot in slots]
    clock = TickClock.over(0.0, end_s)
    parts = sorted(trial_parts_of(events), key=lambda part: (part[0].slot, part[0].began_s))
    absent, lost = away(events, len(nodes), end_s), undone(events, where)
    edges = [
        *([r.began_s, r.ended_s, r.began_s + r.moved_s] for r, *_ in parts),
        *(each[:2] for each in absent),
        *([each.began_s, each.lost_s] for each in lost),
    ]
    instants = np.unique(clock.ticks([0.0, end_s, *(at_s for each in edges for at_s in each)]))

    def at(times_s: Sequence[float]) -> Array:
        return np.searchsorted(instants, clock.ticks(times_s))

    columns = {"instants": PackedColumn(instants, sorted=True)}
    columns |= _part_columns([part[0] for part in parts], len(slots), at)
    columns |= _then_columns(parts)
    columns["metric"] = PackedColumn(np.float32(sign) * columns["metric"].values)
    if not measured:
        columns["paint"] = PackedColumn(columns["item"].values % blocks.TRIALS)
    columns |= _other_columns(absent, lost, at)
    return {"tick_s": clock.tick_s, "bars": len(parts), **packed(columns)}


Part = tuple[Reported, int, int, int]
"""A report, what happened to its trial, the donor of a clone or how often its network has grown, and the
number of trials of the assignment."""


def trial_parts_of(events: Sequence[Event]) -> list[Part]:
    """Return all intervals that were trained."""
    found: list[Part] = []
    last: dict[int, int] = {}
    lists: dict[int, int] = {}
    growths: dict[int, int] = {}
    for event in events:
        if isinstance(event, Grown) and event.trial in last:
            growths[event.trial] = growths.get(event.trial, 0) + 1
            report, *_, listed = found[last[event.trial]]
            found[last[event.trial]] = (report, GREW, growths[event.trial], listed)
        elif isinstance(event, Assigned):
            lists[event.slot] = event.trials
        elif isinstance(event, Reported):
            last[event.trial] = len(found)
            found.append((event, GOES_ON, 0, lists.get(event.slot, 1)))
        elif isinstance(event, Cloned | Stopped | TrialFinished) and event.trial in last:
            report, *_, listed = found[last[event.trial]]
            found[last[event.trial]] = (report, *_became(event), listed)
    return found


def _became(event: Cloned | Stopped | TrialFinished) -> tuple[int, int]:
    if isinstance(event, Cloned):
        return (GOES_ON, 0) if event.donor == event.trial else (CLONED, event.donor)
    return (STOPPED if isinstance(event, Stopped) else DONE), 0


def _part_columns(reports: Sequence[Reported], slots: int, at: Any) -> dict[str, PackedColumn]:
    starts, ends = at([r.began_s for r in reports]), at([r.ended_s for r in reports])
    metric = np.array([r.metric for r in reports], np.float32)
    ones = np.ones(len(reports), np.int64)
    return {
        "counts": PackedColumn(np.bincount(np.array([r.slot for r in reports], np.int64), minlength=slots)),
        "start": PackedColumn(starts, sorted=True),
        "length": PackedColumn(ends - starts),
        "trains": PackedColumn(at([r.began_s + r.moved_s for r in reports]), sorted=True),
        "item": PackedColumn(np.array([r.trial for r in reports], np.int64)),
        "steps": PackedColumn(np.array([r.steps for r in reports], np.int64)),
        "metric": PackedColumn(metric),
        "paint": PackedColumn(shade([float(each) for each in metric])),
        "height": PackedColumn(ones),
        "place": PackedColumn(0 * ones),
        "of": PackedColumn(ones),
    }


def shade(metrics: Sequence[float]) -> Array:
    """Return the shade of each metric, from 1 for the worst to the last for the best; 0 if not measured."""
    scale = shading(metrics)
    if scale is None:
        return np.zeros(len(metrics), np.int64)
    values = np.array(metrics)
    share = np.clip((values - scale.least) / (scale.most - scale.least), 0.0, 1.0) ** scale.power
    return np.where(np.isnan(values), 0, 1 + np.rint(np.nan_to_num(share) * (blocks.SHADES - 2))).astype(
        np.int64
    )


def _then_columns(parts: Sequence[Part]) -> dict[str, PackedColumn]:
    _, then, donor, listed = zip(*parts, strict=True) if parts else ((), (), (), ())
    named = {"then": then, "donor": donor, "listed": listed}
    return {name: PackedColumn(np.array(values, np.int64)) for name, values in named.items()}


def _other_columns(absent: Sequence[Absence], lost: Sequence[LostWork], at: Any) -> dict[str, PackedColumn]:
    return {
        **away_columns(absent, at(np.reshape([each[:2] for each in absent], (-1, 2)))),
        "lost_start": PackedColumn(at([each.began_s for each in lost])),
        "lost_end": PackedColumn(at([each.lost_s for each in lost])),
        "lost_row": PackedColumn(np.array([each.slot for each in lost], np.int64)),
    }


MOST_BARS = 150_000
"""Largest number of bars of all timelines of a group; the first seed of each allocation is always shown."""
PARTS = (
    ("computing", ["#8496ad", "#7d90a8"]),
    ("dispatch and transfer", ["#3c4450", "#d5dae1"]),
    ("lost", ["#c0392b", "#e57368"]),
    ("idle", ["#e6e6e3", "#34373c"]),
)


def population_section(
    number: int, group: PopulationGroup, tick: Callable[[str], object] = lambda name: None
) -> Section:
    """Return the section of a group of runs; `tick` gets the name of each run in progress."""
    names = labels(group.runs)
    real = all(is_real(run.command) for run in group.runs)
    curves = _accuracies(group)
    return Section(
        id=f"population-{number}",
        kind="real runs" if real else "populations",
        title=title_of(group, real=real),
        about=_about(group, real=real),
        glance=glance(names, group.runs),
        blocks=[
            comparison(names, group.runs),
            timelines(names, group, tick),
            *([accuracy(names, curves, group.runs[0].summary)] if all(curves) else []),
            *(every_trial(name, run) for name, run in zip(names, group.runs, strict=True) if is_shown(run)),
            slot_use(names, group.runs),
        ],
        commands=tuple(dict.fromkeys(run.command for run in group.runs)),
    )


def title_of(group: PopulationGroup, *, real: bool) -> str:
    """Return the title of a group: what was trained, and on what."""
    equal = group.cluster.startswith(UNNAMED) and len({slot.speed for slot in group.slots}) == 1
    machines = f"{len(group.slots)} equal slots" if equal else group.machines
    where = f"real run on {group.cluster}" if real else f"on {machines}"
    return ", ".join(filter(None, [f"{group.evolved}, {where}", group.label]))


def _about(group: PopulationGroup, *, real: bool) -> str:
    seeds = len(group.runs[0].summary.repetitions)
    how = "Real run" if real else "Simulated"
    slots = "" if group.cluster.startswith(UNNAMED) else f"; {len(group.slots)} slots"
    count = len(group.runs)
    what = "one allocation" if count == 1 else f"{count} allocations of the same trials to slots"
    return f"{how}: {what}{slots}; " + ("one repetition" if seeds == 1 else f"means over {seeds} repetitions")


def labels(runs: Sequence[PopulationRecord]) -> list[str]:
    """Return the allocation of each run, with its folder where others have the same."""
    names = [run.summary.allocation for run in runs]
    return [
        name if names.count(name) == 1 else f"{name} ({run.folder.path.name})"
        for name, run in zip(names, runs, strict=True)
    ]


def glance(names: Sequence[str], runs: Sequence[PopulationRecord]) -> Glance:
    """Return the allocation with the least makespan."""
    if all(run.summary.has_deadline and run.summary.final_accuracy is not None for run in runs):
        return _at_deadline(names, runs)
    values = [run.summary.makespan_s for run in runs]
    standings = verdict.Standings(names, values)
    more = "" if len(runs) == 1 else ", before all others"
    best = runs[standings.best].summary
    measured = best.best_accuracy is not None
    accuracy = f"; its best trial reaches {best.shown(best.best_accuracy)}" if measured else ""
    says = f"is done after {verdict.span(values[standings.best])}{more}{accuracy}"
    return verdict.glance(standings, [blocks.allocation(run.summary.allocation) for run in runs], says)


def _at_deadline(names: Sequence[str], runs: Sequence[PopulationRecord]) -> Glance:
    """Return the allocation with the best trial at the deadline."""
    found = [run.summary.final_accuracy or 0.0 for run in runs]
    standings = verdict.Standings(names, [-accuracy for accuracy in found])
    best = runs[standings.best].summary
    says = (
        f"has the best trial at the deadline of {verdict.span(best.makespan_s)}: "
        f"{best.shown(found[standings.best])}"
    )
    colour, several = blocks.allocation(best.allocation), len(runs) > 1
    second = sorted(found, reverse=True)[1] if several else 0.0
    others = f"the next has {best.shown(second)}" if several else ""
    return Glance(names[standings.best], colour, says, others, [], won=several)


def comparison(names: Sequence[str], runs: Sequence[PopulationRecord]) -> Block:
    """Return the columns of the text table."""
    grounded = on_common_ground([run.summary for run in runs])
    heads, rows = summary_columns(grounded)
    named = [[TableCell(name, name), *row] for name, row in zip(names, rows, strict=True)]
    colours = [blocks.allocation(run.summary.allocation) for run in runs]
    return table("Comparison", [Head("allocation"), *heads], named, colours)


def summary_columns(grounded: Sequence[PopulationSummary]) -> tuple[list[Head], list[list[TableCell]]]:
    """Return columns of metrics and their cells; accuracies only if any were measured."""
    heads = [
        Head("makespan [s]", "When all trials were done: the mean over the repetitions", "least"),
        Head("lower bound [s]", "The least time that this work can take on these slots"),
        Head("÷ lower bound", "Makespan by lower bound: 1 is perfect", "least"),
        Head("idle", "The share of time in which slots had nothing to do", "least"),
        Head("clones", "How often a trial continued as a clone of another"),
        Head("decisions/s", "How often a trial was placed on a slot, by the seconds that it took"),
        Head(
            f"best {grounded[0].metric_name}",
            "Of any trial: the mean over the repetitions",
            "least" if grounded[0].mode == "min" else "most",
        ),
    ]
    measured = any(summary.best_accuracy is not None for summary in grounded)
    columns = len(heads) if measured else len(heads) - 1
    found = heads[:columns], [_cells(summary)[:columns] for summary in grounded]
    if not all(summary.has_deadline for summary in grounded):
        return found
    more = [
        Head("at the deadline", "Metric of the best trial when the run ended", "most"),
        Head("best three", "Mean of the best three trials when the run ended", "most"),
        Head("test", "Test accuracy of the trial that was best on the validation split"),
        Head("growths", "How often a network grew"),
    ]
    return [*found[0], *more], [
        [*row, *_deadline_cells(summary)] for row, summary in zip(found[1], grounded, strict=True)
    ]


def _deadline_cells(summary: PopulationSummary) -> list[TableCell]:
    reached = summary.final_accuracy, summary.best_three, summary.test_accuracy
    cells = [
        TableCell(None, "–") if each is None else TableCell(summary.sign * each, summary.shown(each))
        for each in reached
    ]
    return [*cells, TableCell(summary.growths, f"{summary.growths:,.1f}")]


def _cells(summary: PopulationSummary) -> list[TableCell]:
    best = summary.best_accuracy
    return [
        TableCell(summary.makespan_s, f"{summary.makespan_s:,.2f}"),
        TableCell(summary.lower_bound_s, f"{summary.lower_bound_s:,.2f}"),
        TableCell(summary.ratio, f"{summary.ratio:.3f}"),
        TableCell(summary.idle, f"{summary.idle:.1%}"),
        TableCell(summary.clones, f"{summary.clones:,.1f}"),
        TableCell(summary.decisions_per_s, f"{summary.decisions_per_s:,.0f}"),
        TableCell(None, "–") if best is None else TableCell(summary.sign * best, summary.shown(best)),
    ]


def _accuracies(group: PopulationGroup) -> list[AccuracyCurve | None]:
    end_s = BEYOND * max(map(done_s, group.runs))
    return [accuracy_curve(run, end_s) for run in group.runs]


def accuracy(
    names: Sequence[str], curves: Sequence[AccuracyCurve | None], summary: PopulationSummary
) -> Block:
    """Return a chart of the best metric of any trial so far, until all are done."""
    lines = []
    for name, curve in zip(names, curves, strict=True):
        assert curve is not None
        over = min(int(np.searchsorted(curve.at_s, curve.end_s)), len(curve.at_s) - 1)
        known = np.flatnonzero(~np.isnan(curve.mean[: over + 1]))
        rises = known[np.append(True, np.diff(curve.mean[known]) != 0.0)[: len(known)]]
        kept = np.union1d(rises, known[-1:])
        colour = blocks.allocation(curve.allocation)
        lines.append(
            ChartLine(
                name, colour, rounded(np.minimum(curve.at_s[kept], curve.end_s)), rounded(curve.mean[kept])
            )
        )
    return chart(
        "How good the best trial is",
        ChartAxis("time", "time"),
        ChartAxis(f"best {summary.metric_name} so far", "share" if summary.in_percent else "number"),
        lines,
        steps=True,
        note="Means over the repetitions; each line ends when all trials are done.",
    )


def every_trial(name: str, run: PopulationRecord) -> Block:
    """Return a chart of the metric of each trial, which is named by its number and its changes."""
    summary = run.summary
    seed = summary.repetitions[0].seed
    lines = []
    for curve in trial_curves(run.events(seed)):
        changes = ", ".join(f"{change} at {at_s:.3g} s" for at_s, _, change in curve.grown)
        lines.append(
            ChartLine(
                f"trial {curve.trial}" + (f" ({changes})" if changes else ""),
                blocks.trials()[curve.trial % blocks.TRIALS],
                rounded(np.array(curve.at_s)),
                rounded(summary.sign * np.array(curve.metric)),
                dash=1 if changes else 0,
            )
        )
    return chart(
        f"Every trial under {name}",
        ChartAxis("time", "time"),
        ChartAxis(summary.metric_name, "share" if summary.in_percent else "number"),
        lines,
        note=f"Seed {seed}. Dashed: trials whose networks grew.",
    )


def slot_use(names: Sequence[str], runs: Sequence[PopulationRecord]) -> Block:
    """Return how all slots together spent their time."""
    rows = [
        (name, [round(part, 4) for part in parts_of(run.summary.slot_use())])
        for name, run in zip(names, runs, strict=True)
    ]
    lost = any(values[2] > 0.0 for _, values in rows)
    kept = [at for at in range(len(PARTS)) if lost or PARTS[at][0] != "lost"]
    return shares(
        "How slots spent their time",
        [PARTS[at] for at in kept],
        [(name, [values[at] for at in kept]) for name, values in rows],
    )


def parts_of(uses: Sequence[SlotUse]) -> tuple[float, float, float, float]:
    """Return shares of all slots' time: computing, communicating, lost, idle."""
    there_s = sum(use.there_s for use in uses) or 1.0
    computing, moving, lost = (
        sum(getattr(use, name) for use in uses) / there_s
        for name in ("computing_s", "communicating_s", "lost_s")
    )
    return computing, moving, lost, max(0.0, 1.0 - computing - moving - lost)


def timelines(names: Sequence[str], group: PopulationGroup, tick: Callable[[str], object]) -> Block:
    """Return a timeline per run and seed, up to a number of bars."""
    runs: list[dict[str, Any]] = []
    seeds = max(len(run.summary.repetitions) for run in group.runs)
    measured = any(run.summary.best_accuracy is not None for run in group.runs)
    for turn in range(seeds):
        for name, run in zip(names, group.runs, strict=True):
            if turn < len(run.summary.repetitions) and (
                turn == 0 or sum(each["bars"] for each in runs) < MOST_BARS
            ):
                tick(name)
                runs.append(_timeline(name, run, turn, named=seeds > 1, measured=measured))
    return {
        "type": "timeline",
        "title": "What ran where, and when",
        "of": "trials",
        "metric": group.runs[0].summary.metric_name,
        "nodes": [[name, 0] for name in slot_names(group.slots)],
        "machines": list(dict.fromkeys(slot.node for slot in group.slots)),
        "machine": _nodes(group),
        "items": {"ids": packed_names(()), **packed({})},
        "palette": blocks.shades() if measured else blocks.trials(),
        "measured": measured,
        "legend": [],
        "runs": runs,
        "first": verdict.Standings([], [run.summary.makespan_s for run in group.runs]).best,
    }


def _nodes(group: PopulationGroup) -> list[int]:
    names = list(dict.fromkeys(slot.node for slot in group.slots))
    return [names.index(slot.node) for slot in group.slots]


def _timeline(name: str, run: PopulationRecord, turn: int, *, named: bool, measured: bool) -> dict[str, Any]:
    summary = run.summary
    repetition = summary.repetitions[turn]
    events = run.events(repetition.seed)
    about = blocks.ALLOCATION_RULES.get(summary.allocation, "")
    label = f"{name}, seed {repetition.seed}" if named else name
    bars = trial_bars(events, summary.slots, repetition.makespan_s, measured=measured, sign=summary.sign)
    return {"name": label, "about": about, **bars}
