"""Summaries as text: Markdown for one allocation, and a table for all that were compared."""

from collections.abc import Iterable, Sequence

from rota.results.population.summary import Summary, at_points, mean

Row = Sequence[str]


def markdown(summary: Summary) -> str:
    """One allocation, for people: averages, each repetition, each slot, batch sizes."""
    sections = [
        f"# {summary.allocation}",
        f"{summary.population}, evolution: {summary.evolution}, on {summary.cluster}",
        "## Averages over the repetitions",
        listed(_averages(summary)),
        "## Repetitions",
        ruled(
            (
                "seed",
                "run time [s]",
                "÷ lower bound",
                f"best {summary.metric_name}",
                "clones",
                "stopped",
                "placements",
            ),
            _seeds(summary),
        ),
        "## Slots (means over the repetitions; lists and parts added up)",
        ruled(
            (
                "slot",
                "node",
                "device",
                "speed",
                "computing [s]",
                "communicating [s]",
                "lost [s]",
                "idle",
                "lists",
                "parts",
            ),
            _slots(summary),
        ),
    ]
    sizes = summary.batch_sizes()
    if sizes:
        sections += ["## Batch sizes used, and steps with them", listed(_sizes(sizes))]
    return "\n\n".join(sections) + "\n"


def comparison(runs: Sequence[tuple[str, Summary]]) -> str:
    """Allocations side by side: one line each. Each comes with its point of a grid."""
    measured = any(summary.best_accuracy is not None for _, summary in runs)
    header = ["allocation", "makespan [s]", "lower bound [s]", "ratio", "idle", "clones", "decisions/s"]
    names = dict.fromkeys(f"best {summary.metric_name}" for _, summary in runs)
    rows = [header + [" or ".join(names)] * measured]
    points, summaries = zip(*runs, strict=True)
    for point, summary in zip(points, at_points(points, summaries), strict=True):
        name = f"{point} {summary.allocation}".strip()
        rows.append(_compared(name, summary) + [summary.shown(summary.best_accuracy)] * measured)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "   ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )


def listed(items: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in items)


def ruled(header: Row, rows: Iterable[Row]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _averages(summary: Summary) -> Iterable[tuple[str, str]]:
    yield "run time", f"{summary.makespan_s:,.2f} s"
    yield "lower bound", f"{summary.lower_bound_s:,.2f} s"
    yield "ratio", f"{summary.ratio:.3f}"
    if summary.best_accuracy is not None:
        name = f"best {summary.metric_name}"
        yield name, summary.shown(summary.best_accuracy)
        yield f"{name} in the end", summary.shown(summary.final_accuracy)
    if summary.to_target_s is not None:
        yield "time to the target", f"{summary.to_target_s:,.2f} s"
    yield "clones", f"{summary.clones:,.1f}"
    yield (
        "lists handed out",
        f"{mean(sum(slot.lists for slot in each.slots) for each in summary.repetitions):,.1f}",
    )
    yield "placements", f"{mean(each.decisions for each in summary.repetitions):,.1f}"
    yield "placements per second of making it", f"{summary.decisions_per_s:,.0f}"


def _seeds(summary: Summary) -> Iterable[Row]:
    for each in summary.repetitions:
        ratio = each.makespan_s / each.lower_bound_s
        counts = (str(each.clones), str(each.stopped), str(each.decisions))
        best = summary.shown(each.best_accuracy)
        yield (str(each.seed), f"{each.makespan_s:,.2f}", f"{ratio:.3f}", best, *counts)


def _slots(summary: Summary) -> Iterable[Row]:
    for number, (slot, use) in enumerate(zip(summary.slots, summary.slot_use(), strict=True)):
        seconds = (f"{value:,.2f}" for value in (use.computing_s, use.communicating_s, use.lost_s))
        counts = (f"{use.idle_share:.1%}", f"{use.lists:,}", f"{use.parts:,}")
        yield (str(number), slot.node, slot.device, f"{slot.speed:g}", *seconds, *counts)


def _sizes(sizes: dict[str, dict[str, int]]) -> Iterable[tuple[str, str]]:
    for node, steps in sizes.items():
        yield node, ", ".join(f"{size} ({count:,})" for size, count in steps.items())


def _compared(name: str, summary: Summary) -> list[str]:
    times = (f"{summary.makespan_s:,.2f}", f"{summary.lower_bound_s:,.2f}", f"{summary.ratio:.3f}")
    return [name, *times, f"{summary.idle:.1%}", f"{summary.clones:,.1f}", f"{summary.decisions_per_s:,.0f}"]
