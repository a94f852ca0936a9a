"""Sections of a report about grids: metrics against parameters, and a table with a row per run."""

import shlex
from collections import Counter
from collections.abc import Sequence

from rota.figures.grid import DODGE, MOST_TICKS, GridPanel, caption, panels
from rota.figures.grid_runs import MOST_POINTS, OfGrid, ParameterGrid, population_grid, trace_grid
from rota.report import blocks, verdict
from rota.report.blocks import Block, ChartAxis, ChartLine, Glance, Head, Section, TableCell, chart, table
from rota.report.jobs import metric_cells, metric_heads, unit_of
from rota.report.populations import summary_columns
from rota.report.timelines import rounded
from rota.results.parameters import is_number, shown
from rota.results.population.run import PopulationRecord
from rota.results.population.summary import at_points
from rota.results.run import RunHead

FOLD = 40
"""Number of rows of the table that are shown at first."""
SOONEST = {"scheduler": "completes jobs soonest on average", "allocation": "is done first"}


def trace_grid_section(number: int, runs: Sequence[RunHead]) -> Section:
    """Return the section of the runs of traces of a grid."""
    unit, unit_s = unit_of(run.metrics for run in runs)
    rows = [metric_cells(run.metrics, run.wall_s, unit_s) for run in runs]
    return _section(f"grid-{number}", "grids of schedulers", trace_grid(runs), runs, metric_heads(unit), rows)


def population_grid_section(number: int, runs: Sequence[PopulationRecord]) -> Section:
    """Return the section of the populations of a grid."""
    grounded = at_points([shown(run.parameters) for run in runs], [run.summary for run in runs])
    kind = "grids of allocations"
    return _section(
        f"population-grid-{number}", kind, population_grid(runs), runs, *summary_columns(grounded)
    )


def _section(
    name: str,
    kind: str,
    grid: ParameterGrid,
    runs: Sequence[OfGrid],
    heads: Sequence[Head],
    rows: Sequence[Sequence[TableCell]],
) -> Section:
    words = " × ".join(grid.labels.names[key] for key in grid.labels.keys)
    return Section(
        id=name,
        kind=kind,
        title=f"{grid.name}: {words}",
        about=f"Simulated: {len(grid.runs):,} runs at {caption(grid, averaged=True)}; {_where(grid, runs)}",
        glance=_glance(grid),
        blocks=[*(_chart(grid, panel) for panel in panels(grid)), _table(grid, heads, rows)],
        commands=grid.commands,
    )


def _where(grid: ParameterGrid, runs: Sequence[OfGrid]) -> str:
    """Return how to see the points of a grid that is too large to show them here."""
    if grid.points <= MOST_POINTS:
        return "each point is shown below"
    few = f"timelines and curves are shown of up to {MOST_POINTS} points: name folders of points"
    return f"{few}, as in rota report {shlex.quote(str(runs[0].folder.path.parent))}"


def _glance(grid: ParameterGrid) -> Glance:
    """Return at how many points each policy was best, or as good, by the first metric: less is better."""
    metric = grid.metrics[0].name
    points: dict[str, dict[str, float]] = {}
    for run in grid.runs:
        values = [each[metric] for each in run.repetitions]
        points.setdefault(shown(run.parameters), {})[run.policy] = sum(values) / len(values)
    if len(grid.policies) == 1:
        (policy,), found = grid.policies, [each for values in points.values() for each in values.values()]
        says = f"has {_article(metric)} of {verdict.span(min(found))} to {verdict.span(max(found))}"
        return Glance(policy, blocks.both(grid.colour(policy)), says)
    wins = Counter(
        policy
        for values in points.values()
        for policy, value in values.items()
        if value <= verdict.ALIKE * min(values.values())
    )
    ranked = sorted(grid.policies, key=lambda policy: -wins[policy])
    bars = [
        (policy, blocks.both(grid.colour(policy)), wins[policy], f"best at {wins[policy]:,}")
        for policy in ranked
    ]
    best = ranked[0]
    alike = f"or within {verdict.ALIKE - 1.0:.1%} of that"
    says = f"{SOONEST[grid.kind]}, {alike}, at {wins[best]:,} of {len(points):,} points"
    return Glance(best, blocks.both(grid.colour(best)), says, "", bars)


def _article(metric: str) -> str:
    return f"{'an' if metric[0] in 'aeiou' else 'a'} {metric}"


def _chart(grid: ParameterGrid, panel: GridPanel) -> Block:
    """Return a chart; intervals are thin vertical lines; numbers are joined, categories are not."""
    axis = panel.axis
    means, intervals = [], []
    for number, line in enumerate(panel.lines):
        colour = blocks.both(grid.colour(line.policy))
        beside = 0.0 if axis.numeric else DODGE * ((number + 0.5) / len(panel.lines) - 0.5)
        places = rounded([place + beside for place in axis.places])
        mean, low, high = (rounded(part) for part in line[1:])
        gap = [] if axis.numeric else [None]
        means.append(ChartLine(line.policy, colour, _spread([(x, *gap) for x in places]),
                          _spread([(y, *gap) for y in mean])))  # fmt: skip
        upright = [(x, *ends) for x, *ends in zip(places, low, high, strict=True) if None not in ends]
        if upright:
            x, y = [(x, x, None) for x, _, _ in upright], [(*ends, None) for _, *ends in upright]
            intervals.append(ChartLine(line.policy, colour, _spread(x), _spread(y), faint=True))
    name, few = panel.metric.name, not axis.numeric or len(axis.places) <= MOST_TICKS
    marks = (axis.places, axis.names) if few else ((), ())
    return chart(
        f"{name[:1].upper()}{name[1:]}" + (f" by {axis.name}" if axis.name else ""),
        ChartAxis(axis.name, "number" if axis.numeric else "text", axis.log, *marks),
        ChartAxis(name, panel.metric.kind),
        [*intervals, *means],
        dots=True,
    )


def _spread(parts: Sequence[Sequence[float | None]]) -> list[float | None]:
    return [value for part in parts for value in part]


def _table(grid: ParameterGrid, heads: Sequence[Head], rows: Sequence[Sequence[TableCell]]) -> Block:
    """Return a table with a row per run: its policy, its parameters, then the metrics."""
    labels = grid.labels
    whole = [
        [
            TableCell(run.policy, run.policy),
            *(_parameter(run.parameters.get(key), labels.value(run.parameters, key)) for key in labels.keys),
            *row,
        ]
        for run, row in zip(grid.runs, rows, strict=True)
    ]
    named = [Head(grid.kind), *(Head(labels.names[key], f"[grid] {key}") for key in labels.keys)]
    colours = [blocks.both(grid.colour(run.policy)) for run in grid.runs]
    return table("All runs", [*named, *heads], whole, colours, fold=FOLD)


def _parameter(value: object, text: str) -> TableCell:
    return TableCell(value if isinstance(value, int | float) and is_number(value) else text, text)
