"""Summaries as text: Markdown for one allocation, and a table for all that were compared."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from rota.results.population.summary import Summary, mean, on_common_ground

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
            ("seed", "run time [s]", "÷ bound", "best accuracy", "clones", "stopped", "placements"),
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
    """Allocations side by side: one line each. Each comes with its point of a grid, point by point."""
    measured = any(summary.best_accuracy is not None for _, summary in runs)
    header = ["allocation", "makespan [s]", "bound [s]", "ratio", "idle", "clones", "decisions/s"]
    rows = [header + ["best accuracy"] * measured]
    for point, members in groupby(runs, key=lambda run: run[0]):
        for summary in on_common_ground([summary for _, summary in members]):
            name = f"{point} {summary.allocation}".strip()
            rows.append(_compared(name, summary) + [_share(summary.best_accuracy)] * measured)
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
        yield "best accuracy", _share(summary.best_accuracy)
        yield "best accuracy in the end", _share(summary.final_accuracy)
    if summary.to_target_s is not None:
        yield "time to the target", f"{summary.to_target_s:,.2f} s"
    yield "clones", f"{mean(each.clones for each in summary.repetitions):,.1f}"
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
        yield (str(each.seed), f"{each.makespan_s:,.2f}", f"{ratio:.3f}", _share(each.best_accuracy), *counts)


def _slots(summary: Summary) -> Iterable[Row]:
    for number, (slot, use) in enumerate(zip(summary.slots, summary.slot_use(), strict=True)):
        seconds = (f"{value:,.2f}" for value in (use.computing_s, use.communicating_s, use.lost_s))
        counts = (f"{use.idle_share:.1%}", f"{use.lists:,}", f"{use.parts:,}")
        yield (str(number), slot.node, slot.device, f"{slot.speed:g}", *seconds, *counts)


def _sizes(sizes: dict[str, dict[str, int]]) -> Iterable[tuple[str, str]]:
    for node, steps in sizes.items():
        yield node, ", ".join(f"{size} ({count:,})" for size, count in steps.items())


def _compared(name: str, summary: Summary) -> list[str]:
    uses = summary.slot_use()
    idle = sum(use.idle_s for use in uses) / (sum(use.there_s for use in uses) or 1.0)
    clones = mean(each.clones for each in summary.repetitions)
    times = (f"{summary.makespan_s:,.2f}", f"{summary.lower_bound_s:,.2f}", f"{summary.ratio:.3f}")
    return [name, *times, f"{idle:.1%}", f"{clones:,.1f}", f"{summary.decisions_per_s:,.0f}"]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
