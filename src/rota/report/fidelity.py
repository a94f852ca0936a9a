"""Sections of a report that compare simulated runs with real ones."""

from collections.abc import Iterator, Sequence
from itertools import product

from rota.core.errors import InputError
from rota.figures.fidelity import done
from rota.report import blocks, verdict
from rota.report.blocks import Block, ChartAxis, ChartLine, Glance, Head, Section, TableCell, chart, table
from rota.report.timelines import rounded, thinned
from rota.report.verdict import is_real
from rota.results.fidelity.aligned import AlignedTimeline
from rota.results.fidelity.compare import AnyRun, RunPair, TimelineComparison, Versus, compare, policy_of
from rota.results.population.run import PopulationRecord

REAL, SIMULATED = "real", "simulated"
COLOURS = {REAL: blocks.both("#d55500"), SIMULATED: blocks.both("#0072b2")}
POINTS = 400


def fidelity_sections(runs: Sequence[AnyRun]) -> Iterator[Section]:
    """Yield a section for each real run and each simulated one of the same work under the same policy."""
    real = [run for run in runs if is_real(run.command)]
    simulated = [run for run in runs if not is_real(run.command)]
    number = 0
    for pair in (pair for here, there in product(real, simulated) for pair in pairs_of(here, there)):
        timelines = pair.timelines()
        try:
            found = compare(*timelines)
        except InputError:  # other trials or jobs: not the same work
            continue
        yield fidelity_section(number, pair, timelines, found)
        number += 1


def pairs_of(real: AnyRun, simulated: AnyRun) -> list[RunPair]:
    """Return the pair of the first seed that both have, if their summaries say that the work is the same."""
    name = policy_of(real)
    if name != policy_of(simulated) or isinstance(real, PopulationRecord) != isinstance(
        simulated, PopulationRecord
    ):
        return []
    if not (isinstance(real, PopulationRecord) and isinstance(simulated, PopulationRecord)):
        return [RunPair(name, None, real, simulated)]
    here, there = real.summary, simulated.summary
    alike = (here.population, here.evolution, len(here.slots)) == (
        there.population,
        there.evolution,
        len(there.slots),
    )
    both = {each.seed for each in here.repetitions} & {each.seed for each in there.repetitions}
    return [RunPair(name, min(both), real, simulated)] if alike and both else []


def fidelity_section(
    number: int, pair: RunPair, timelines: tuple[AlignedTimeline, AlignedTimeline], found: TimelineComparison
) -> Section:
    """Return the section that compares a simulated run with a real one."""
    folders = pair.real.folder.path.name, pair.simulated.folder.path.name
    return Section(
        id=f"fidelity-{number}",
        kind="simulated against real",
        title=f"Simulated against real: {pair.title}",
        about=f"{found.count:,} {found.what}; real: {folders[0]}, simulated: {folders[1]}",
        glance=glance(found),
        blocks=[errors(found), ended(timelines, found.what)],
        commands=tuple(dict.fromkeys((pair.real.command, pair.simulated.command))),
    )


def glance(found: TimelineComparison) -> Glance:
    """Return the prediction errors of the makespan and of the mean completion time."""
    off = _off(found.makespan)
    says = f"predicts {verdict.span(found.makespan.simulated)} where it took "
    says += f"{verdict.span(found.makespan.real)} until all {found.what} were done: {off}"
    bars = [
        (name, COLOURS[name], value, verdict.span(value))
        for name, value in ((REAL, found.makespan.real), (SIMULATED, found.makespan.simulated))
    ]
    return Glance(
        "the simulation",
        COLOURS[SIMULATED],
        says,
        f"the mean completion time is {_off(found.jct.mean)}",
        bars,
    )


def errors(found: TimelineComparison) -> Block:
    """Return a table with a line per quantity."""
    heads = [
        Head("quantity"),
        Head("real [s]"),
        Head("simulated [s]"),
        Head("error", "Above 0 if the simulation says too much"),
    ]
    whole, computing = found.intervals.whole, found.intervals.computing
    quantities = {
        "makespan": found.makespan,
        "mean completion time": found.jct.mean,
        "median completion time": found.jct.p50,
        "99th percentile": found.jct.p99,
        found.intervals.unit: whole.mean if whole else None,
        "of it computing": computing.mean if computing else None,
    }
    rows = [_row(name, versus) for name, versus in quantities.items() if versus is not None]
    return table("How far it is off", heads, rows, [], note=_decided(found))


def _row(name: str, versus: Versus) -> list[TableCell]:
    return [
        TableCell(name, name),
        *(TableCell(value, f"{value:,.2f}" if value >= 1.0 else f"{value:.3g}") for value in versus),
        TableCell(versus.error_percent, _percent(versus)),
    ]


def _decided(found: TimelineComparison) -> str:
    same = found.intervals.same_slot
    slots = "" if same is None else f"{same:.0%} of the intervals ran on the same slot. "
    order = "the same" if found.ends.same else "not the same"
    return f"{slots}The order in which {found.what} ended is {order}."


def ended(timelines: tuple[AlignedTimeline, AlignedTimeline], what: str) -> Block:
    """Return a chart of the share of trials or jobs done over time."""
    lines = []
    for name, each in zip((REAL, SIMULATED), timelines, strict=True):
        at_s, shares = done(each)
        kept = [0, *(thinned(len(at_s) - 1, POINTS) + 1).tolist()]
        x, y = ([values[at] for at in kept] for values in (at_s, shares))
        lines.append(ChartLine(name, COLOURS[name], rounded(x), rounded(y)))
    return chart(
        f"How many {what} are done",
        ChartAxis("time", "time"),
        ChartAxis(f"{what} done", "share"),
        lines,
        steps=True,
    )


def _off(versus: Versus) -> str:
    """Return an error in words: `3.2% too long`."""
    error = versus.error_percent or 0.0
    return f"{abs(error):.1f}% too {'long' if error > 0.0 else 'short'}"


def _percent(versus: Versus) -> str:
    return "–" if versus.error_percent is None else f"{versus.error_percent:+.1f}%"
