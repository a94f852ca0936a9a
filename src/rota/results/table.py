"""Runs side by side, as text: one line each, times in the unit that suits them."""

from collections.abc import Sequence
from typing import NamedTuple

from rota.core.text import printable
from rota.results.metrics import Metrics

UNITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
TIMES = ("avg JCT", "p50", "p99", "makespan", "queueing")
OTHERS = ("utilisation", "fairness", "preemptions", "wall [s]")

FAILED = "failed (not in JCT, fairness)"
"""The heading of a column that is there if a job has failed."""


class Line(NamedTuple):
    """What the table says of one run."""

    name: str
    metrics: Metrics
    wall_s: float


def table(lines: Sequence[Line]) -> str:
    """The table; all times but the last are in one unit, which the header says."""
    longest_s = max(line.metrics.avg_jct_s for line in lines)
    unit, seconds = next((unit for unit in UNITS if longest_s >= unit[1]), UNITS[-1])
    failed = any(line.metrics.failed for line in lines)
    header = ("scheduler", *(f"{name} [{unit}]" for name in TIMES), *OTHERS, *([FAILED] if failed else []))
    rows = [header, *(_cells(line, seconds, failed=failed) for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "   ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )


def _cells(line: Line, unit_s: float, *, failed: bool) -> tuple[str, ...]:
    m = line.metrics
    times_s = (m.avg_jct_s, m.p50_jct_s, m.p99_jct_s, m.makespan_s, m.queueing_s)
    return (
        printable(line.name),
        *(f"{time_s / unit_s:,.2f}" for time_s in times_s),
        f"{m.utilisation:.1%}",
        f"{m.fairness_mean:.2f}",
        f"{m.preemptions:,}",
        f"{line.wall_s:.3f}",
        *([f"{m.failed:,} of {m.jobs:,}"] if failed else []),
    )
