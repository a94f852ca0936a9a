"""A comparison of timelines as text, and as plain values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

from rota.core.text import aligned
from rota.results.fidelity.compare import Agreement, DurationError, TimelineComparison, Versus

Row = tuple[str, str, str, str]
NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest prediction errors allowed, in percent."""

    makespan: float
    mean_jct: float

    def exceeded(self, found: TimelineComparison) -> list[str]:
        """Return the errors that are larger, in words."""
        checks = (("makespan", found.makespan, self.makespan), ("mean JCT", found.jct.mean, self.mean_jct))
        return [
            f"{name} is off by {_percent(versus.error_percent)}, allowed are {limit:g} %"
            for name, versus, limit in checks
            if versus.error_percent is None or abs(versus.error_percent) > limit
        ]


def table(title: str, found: TimelineComparison) -> str:
    """Return a table of one comparison: a line per quantity, real and simulated."""
    head = f"{title}: {found.count:,} {found.what}, {found.intervals.aligned:,} intervals aligned"
    rows: list[Row] = [("", "real", "simulated", "error"), *_times(found)]
    said = list(_notes(found))
    width = max(len(name) for name, *_ in (*rows, *said))
    notes = [f"{name.ljust(width)}   {text}" for name, text in said]
    return "\n".join([head, "", *aligned(rows, least=width), "", *notes])


def record(found: TimelineComparison) -> dict[str, Any]:
    """Return plain values."""
    jct, intervals, at = found.jct, found.intervals, found.diverged
    return {
        "what": found.what,
        "count": found.count,
        "makespan": _versus(found.makespan),
        **_outcome(found),
        "makespan_at_pace": found.makespan_at_real_step_time and _versus(found.makespan_at_real_step_time),
        "jct": {
            "mean": _versus(jct.mean),
            "p50": _versus(jct.p50),
            "p99": _versus(jct.p99),
            "mean_absolute_error_percent": jct.off_percent,
            "correlation": jct.correlation,
        },
        "interval": {
            "unit": intervals.unit,
            "aligned": intervals.aligned,
            "only_real": intervals.only_real,
            "only_simulated": intervals.only_simulated,
            "whole": _duration_error(intervals.whole),
            "computing": _duration_error(intervals.computing),
        },
        "decisions": {
            "same_slot": intervals.same_slot,
            "parted": at and {"real_s": at.real, "simulated_s": at.simulated},
            "starts": found.starts._asdict(),
            "ends": found.ends._asdict(),
        },
    }


def _versus(versus: Versus) -> dict[str, float | None]:
    return {"real_s": versus.real, "simulated_s": versus.simulated, "error_percent": versus.error_percent}


def _duration_error(error: DurationError | None) -> dict[str, float | None] | None:
    if error is None:
        return None
    return {**_versus(error.mean), "median_absolute_error_percent": error.off_percent}


def _outcome(found: TimelineComparison) -> dict[str, Any]:
    if (outcome := found.outcome) is None:
        return {}
    both = {"accuracy": outcome.accuracy, "changes": outcome.changes, "changed_after": outcome.changed_after}
    return {
        "outcome": {
            name: each and {"real": each.real, "simulated": each.simulated} for name, each in both.items()
        }
    }


def over_seeds(pairs: Sequence[TimelineComparison]) -> str:
    """Return how far accuracies are off over several seeds, next to how far real ones are from each other."""
    found = [each.outcome.accuracy for each in pairs if each.outcome is not None]
    if len(found) < 2:
        return ""
    off = fmean(each.simulated - each.real for each in found)
    singly = fmean(abs(each.simulated - each.real) for each in found)
    seeds = fmean(abs(a.real - b.real) for a, b in combinations(found, 2))
    return (
        f"accuracy over {len(found)} seeds: simulated − real {off:+.4f} on average, {singly:.4f} apart "
        f"with the same seed; two seeds of the real run are {seeds:.4f} apart"
    )


def _outcomes(found: TimelineComparison) -> Iterator[Row]:
    if (outcome := found.outcome) is None:
        return
    real, simulated = outcome.accuracy
    name = "accuracy at the deadline" if outcome.has_deadline else "metric at the end"
    yield name, f"{real:.4f}", f"{simulated:.4f}", f"{simulated - real:+.4f}"
    if any(outcome.changes):
        real, simulated = outcome.changes
        yield "changes of networks", f"{real:.0f}", f"{simulated:.0f}", f"{simulated - real:+.0f}"
    if outcome.changed_after is not None:
        yield _row("  after steps, mean", outcome.changed_after)


def _times(found: TimelineComparison) -> Iterator[Row]:
    yield from _outcomes(found)
    jct, intervals = found.jct, found.intervals
    at_pace = found.makespan_at_real_step_time
    for name, versus in (
        ("makespan [s]", found.makespan),
        *([("  at real step time", at_pace)] if at_pace else []),
        ("mean JCT [s]", jct.mean),
        ("p50 JCT [s]", jct.p50),
        ("p99 JCT [s]", jct.p99),
    ):
        yield _row(name, versus)
    for name, error in ((intervals.unit, intervals.whole), ("  of it computing", intervals.computing)):
        if error is not None:
            yield _row(name, error.mean)


def _row(name: str, versus: Versus) -> Row:
    return name, _number(versus.real), _number(versus.simulated), _percent(versus.error_percent)


def _notes(found: TimelineComparison) -> Iterator[tuple[str, str]]:
    jct, intervals = found.jct, found.intervals
    yield "single JCTs", f"off by {_share(jct.off_percent)} of the mean; correlation {_tau(jct.correlation)}"
    errors: Sequence[tuple[str, DurationError | None]] = (
        ("single intervals", intervals.whole),
        ("  computing", intervals.computing),
    )
    for name, error in errors:
        if error is not None:
            yield name, f"off by {_share(error.off_percent)} (median)"
    alone = intervals.only_real, intervals.only_simulated
    if any(alone):
        yield "not aligned", f"{alone[0]:,} real and {alone[1]:,} simulated intervals"
    if intervals.same_slot is not None:
        yield "on the same slot", f"{intervals.same_slot:.0%} of the intervals"
    if found.diverged is not None:
        yield "timelines diverge", f"at {_number(found.diverged.real)} s: a slot gets another interval"
    yield "order of starts", _agreed(found.starts)
    yield "order of ends", _agreed(found.ends)


def _agreed(agreement: Agreement) -> str:
    return f"{'the same' if agreement.same else 'not the same'}; Kendall's tau {_tau(agreement.tau)}"


def _number(value: float) -> str:
    return f"{value:,.2f}" if value >= 1.0 else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{round(value, 1) + 0.0:+.1f} %"  # there is no −0.0


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f} %"


def _tau(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"
