"""Populations of trials on the same slots under several allocations, rehearsed or for real."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rota.figures.population import UNNAMED, PopulationGroup, slot_names
from rota.figures.population_accuracy import BEYOND, AccuracyCurve, accuracy_curve, done_s
from rota.report import looks, verdict
from rota.report.blocks import Axis, Block, Cell, Glance, Head, Line, Section, chart, shares, table
from rota.report.commands import is_real
from rota.report.compact import packed, packed_names, rounded
from rota.report.trials import trial_bars
from rota.results.population.run import PopulationRun
from rota.results.population.summary import Summary, on_common_ground
from rota.results.population.usage import SlotUse

MOST_BARS = 150_000
"""Of all timelines of a group; the first seed of each allocation is always there."""
PARTS = (
    ("computing", ["#8496ad", "#7d90a8"]),
    ("handing over", ["#3c4450", "#d5dae1"]),
    ("lost", ["#c0392b", "#e57368"]),
    ("idle", ["#e6e6e3", "#34373c"]),
)


def population_section(
    number: int, group: PopulationGroup, tick: Callable[[str], object] = lambda name: None
) -> Section:
    """All that is to be seen of a group; `tick` is told what is being worked on."""
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
            slot_use(names, group.runs),
        ],
        commands=tuple(dict.fromkeys(run.command for run in group.runs)),
    )


def title_of(group: PopulationGroup, *, real: bool) -> str:
    equal = group.cluster.startswith(UNNAMED) and len({slot.speed for slot in group.slots}) == 1
    machines = f"{len(group.slots)} equal slots" if equal else group.machines
    where = f"for real on {group.cluster}" if real else f"on {machines}"
    return ", ".join(filter(None, [f"{group.evolved}, {where}", group.label]))


def _about(group: PopulationGroup, *, real: bool) -> str:
    seeds = len(group.runs[0].summary.repetitions)
    how = "Run for real" if real else "Simulated"
    slots = "" if group.cluster.startswith(UNNAMED) else f"; {len(group.slots)} slots"
    count = len(group.runs)
    what = "one allocation" if count == 1 else f"{count} allocations of the same trials to slots"
    return f"{how}: {what}{slots}; " + ("one repetition" if seeds == 1 else f"means over {seeds} repetitions")


def labels(runs: Sequence[PopulationRun]) -> list[str]:
    """The allocation of each, with its folder where others have the same."""
    names = [run.summary.allocation for run in runs]
    return [
        name if names.count(name) == 1 else f"{name} ({run.folder.path.name})"
        for name, run in zip(names, runs, strict=True)
    ]


def glance(names: Sequence[str], runs: Sequence[PopulationRun]) -> Glance:
    """By the makespan."""
    values = [run.summary.makespan_s for run in runs]
    contest = verdict.Contest(names, values)
    colours = [looks.allocation(run.summary.allocation) for run in runs]
    bars = [(names[at], colours[at], values[at], verdict.span(values[at])) for at in contest.by_value]
    more = "" if len(runs) == 1 else ", before all others"
    best = runs[contest.best].summary
    measured = best.best_accuracy is not None
    accuracy = f"; its best trial reaches {best.shown(best.best_accuracy)}" if measured else ""
    says = f"is done after {verdict.span(values[contest.best])}{more}{accuracy}"
    several = len(runs) > 1
    colour = colours[contest.best]
    return Glance(names[contest.best], colour, says, verdict.others(contest), bars * several, won=several)


def comparison(names: Sequence[str], runs: Sequence[PopulationRun]) -> Block:
    """The columns of the text table."""
    grounded = on_common_ground([run.summary for run in runs])
    heads, rows = summary_columns(grounded)
    named = [[Cell(name, name), *row] for name, row in zip(names, rows, strict=True)]
    colours = [looks.allocation(run.summary.allocation) for run in runs]
    return table("Comparison", [Head("allocation"), *heads], named, colours)


def summary_columns(grounded: Sequence[Summary]) -> tuple[list[Head], list[list[Cell]]]:
    """Return columns of metrics, and what is in them; accuracies only if any were measured."""
    heads = [
        Head("makespan [s]", "When all trials were done: the mean over the repetitions", "least"),
        Head("lower bound [s]", "What nobody can beat, with this work on these slots"),
        Head("÷ lower bound", "Makespan by lower bound: 1 is perfect", "least"),
        Head("idle", "The share of time in which slots had nothing to do", "least"),
        Head("clones", "How often a trial went on as another"),
        Head("decisions/s", "How often a trial was placed on a slot, by the seconds that it took"),
        Head(
            f"best {grounded[0].metric_name}",
            "Of any trial: the mean over the repetitions",
            "least" if grounded[0].mode == "min" else "most",
        ),
    ]
    measured = any(summary.best_accuracy is not None for summary in grounded)
    columns = len(heads) if measured else len(heads) - 1
    return heads[:columns], [_cells(summary)[:columns] for summary in grounded]


def _cells(summary: Summary) -> list[Cell]:
    best = summary.best_accuracy
    return [
        Cell(summary.makespan_s, f"{summary.makespan_s:,.2f}"),
        Cell(summary.lower_bound_s, f"{summary.lower_bound_s:,.2f}"),
        Cell(summary.ratio, f"{summary.ratio:.3f}"),
        Cell(summary.idle, f"{summary.idle:.1%}"),
        Cell(summary.clones, f"{summary.clones:,.1f}"),
        Cell(summary.decisions_per_s, f"{summary.decisions_per_s:,.0f}"),
        Cell(None, "–") if best is None else Cell(summary.sign * best, summary.shown(best)),
    ]


def _accuracies(group: PopulationGroup) -> list[AccuracyCurve | None]:
    end_s = BEYOND * max(map(done_s, group.runs))
    return [accuracy_curve(run, end_s) for run in group.runs]


def accuracy(names: Sequence[str], curves: Sequence[AccuracyCurve | None], summary: Summary) -> Block:
    """The best that any trial has reached so far, until all are done."""
    lines = []
    for name, curve in zip(names, curves, strict=True):
        assert curve is not None
        over = min(int(np.searchsorted(curve.at_s, curve.end_s)), len(curve.at_s) - 1)
        known = np.flatnonzero(~np.isnan(curve.mean[: over + 1]))
        rises = known[np.append(True, np.diff(curve.mean[known]) != 0.0)[: len(known)]]
        kept = np.union1d(rises, known[-1:])
        colour = looks.allocation(curve.allocation)
        lines.append(
            Line(name, colour, rounded(np.minimum(curve.at_s[kept], curve.end_s)), rounded(curve.mean[kept]))
        )
    return chart(
        "How good the best trial is",
        Axis("time", "time"),
        Axis(f"best {summary.metric_name} so far", "share" if summary.in_percent else "number"),
        lines,
        steps=True,
        note="Means over the repetitions; each line ends when all trials are done.",
    )


def slot_use(names: Sequence[str], runs: Sequence[PopulationRun]) -> Block:
    """What slots did with their time, all of them together."""
    rows = [
        (name, [round(part, 4) for part in parts_of(run.summary.slot_use())])
        for name, run in zip(names, runs, strict=True)
    ]
    lost = any(values[2] > 0.0 for _, values in rows)
    kept = [at for at in range(len(PARTS)) if lost or PARTS[at][0] != "lost"]
    return shares(
        "What slots did with their time",
        [PARTS[at] for at in kept],
        [(name, [values[at] for at in kept]) for name, values in rows],
    )


def parts_of(uses: Sequence[SlotUse]) -> tuple[float, float, float, float]:
    """Shares of all the time in which slots were there: computing, handing over, lost, idle."""
    there_s = sum(use.there_s for use in uses) or 1.0
    computing, moving, lost = (
        sum(getattr(use, name) for use in uses) / there_s
        for name in ("computing_s", "communicating_s", "lost_s")
    )
    return computing, moving, lost, max(0.0, 1.0 - computing - moving - lost)


def timelines(names: Sequence[str], group: PopulationGroup, tick: Callable[[str], object]) -> Block:
    """A timeline per run and seed, as long as there are not too many bars."""
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
        "title": "Who was where, and when",
        "of": "trials",
        "metric": group.runs[0].summary.metric_name,
        "nodes": [[name, 0] for name in slot_names(group.slots)],
        "machines": list(dict.fromkeys(slot.node for slot in group.slots)),
        "machine": _machines(group),
        "items": {"ids": packed_names(()), **packed({})},
        "palette": looks.shades() if measured else looks.trials(),
        "measured": measured,
        "legend": [],
        "runs": runs,
        "first": verdict.Contest([], [run.summary.makespan_s for run in group.runs]).best,
    }


def _machines(group: PopulationGroup) -> list[int]:
    """Of each slot, the node that it is on."""
    names = list(dict.fromkeys(slot.node for slot in group.slots))
    return [names.index(slot.node) for slot in group.slots]


def _timeline(name: str, run: PopulationRun, turn: int, *, named: bool, measured: bool) -> dict[str, Any]:
    summary = run.summary
    repetition = summary.repetitions[turn]
    events = run.events(repetition.seed)
    about = looks.ALLOCATION_RULES.get(summary.allocation, "")
    label = f"{name}, seed {repetition.seed}" if named else name
    bars = trial_bars(events, summary.slots, repetition.makespan_s, measured=measured, sign=summary.sign)
    return {"name": label, "about": about, **bars}
