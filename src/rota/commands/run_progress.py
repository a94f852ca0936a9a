"""Live tables of real runs: trials of a population, or jobs of a trace."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from rota.core.files import printable, printable_lines
from rota.core.population.events import Event, Joined, NodeFailed, Reported, TrialFailed
from rota.core.text import aligned
from rota.execution.folder import last_line
from rota.execution.jobs.status import JobLine, JobsStatus
from rota.execution.status import PopulationStatus, ShownTrial

HEADER = ("trial", "node", "status", "hyper-parameters", "metric", "best", "step", "trained [s]")
MOST = 40
"""Trials in the table on a terminal: those that run, then those that are best."""
ERRORS, LINES = 3, 8
"""Different errors that are shown, and lines of each."""


@contextmanager
def live(
    stream: TextIO,
    every_s: float,
    lines: Callable[[TextIO, float], Any],
    table: Callable[[Any], Any],
) -> Iterator[Callable[[], Any]]:
    """Give what makes a watcher: of `lines`, or on a terminal one that draws a `table` of the status.

    A watcher says something about a run at most once in `every_s` seconds.
    """
    if not stream.isatty():
        yield lambda: lines(stream, every_s)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=stream), auto_refresh=False, transient=True) as shown:

        def watcher() -> Callable[..., None]:
            pace = Pace(every_s)

            def tell(status: Any, *events: Any) -> None:
                if pace.due():
                    shown.update(table(status), refresh=True)

            return tell

        yield watcher


class Pace:
    """A limit: due at most once in so many seconds."""

    def __init__(self, every_s: float, tick: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._tick = every_s, tick
        self._last_s = -math.inf

    def due(self) -> bool:
        """Return whether the time has come; if so, the next interval begins."""
        now_s = self._tick()
        if now_s - self._last_s < self._every_s:
            return False
        self._last_s = now_s
        return True


class Lines:
    """Lines about events, at most one in so many seconds; failures are always said."""

    def __init__(self, stream: TextIO, every_s: float) -> None:
        self._stream, self._pace = stream, Pace(every_s)

    def __call__(self, status: PopulationStatus, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Reported) and not self._pace.due():
                continue  # before any text is made: there may be many reports, and many trials to count
            if text := _line(status, event):
                self._stream.write(f"{printable(text)}\n")
                self._stream.flush()


def summed_up(status: PopulationStatus) -> str:
    """Return a run in a line: `80 reports in 4.1 s, 9 clones, …; best 0.9812 (trial 3)`."""
    done = sum(trial.over for trial in status.trials)
    best = status.best
    text = (
        f"{status.reports:,} reports in {status.at_s:,.1f} s, {status.clones} clones, "
        f"{len(status.failures)} failures, {done} of {len(status.trials)} trials done"
    )
    if math.isfinite(status.frame.deadline_s) and not status.closed:
        text += f", {status.left_s:,.1f} s left until the deadline"
    return (
        text
        if best is None
        else f"{text}; best {status.frame.sign * status.trials[best].best:.4f} (trial {best})"
    )


def failures_text(status: PopulationStatus, logs: Path) -> str:
    """Return the last lines of the last traceback of each error, and where all of it is."""
    errors = {last_line(failed.why): failed for failed in status.failures}  # the last of each
    return "\n".join(_failure(failed, logs) for failed in sorted(errors.values())[-ERRORS:])


def _failure(failed: TrialFailed, logs: Path) -> str:
    log = logs / f"slot{failed.slot}.log"
    where = f"all of it is in {log}" if log.exists() else "--json has all of it"
    lines = printable_lines(failed.why).strip().splitlines()[-LINES:]
    return "\n    ".join([f"trial {failed.trial} failed at {failed.at_s:.2f} s; {where}:", *lines])


def table_text(status: PopulationStatus) -> str:
    """Return the trials, a line each."""
    return columns_text([HEADER, *(_row(status, number) for number in range(len(status.trials)))])


GRID_HEADER = ("point", "status", "done", "best", "trial", "reports", "failures", "time [s]")


def grid_text(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the points of a grid, a line each, from their results or their status."""
    return columns_text([GRID_HEADER, *map(_point_row, records)])


def _point_row(found: Mapping[str, Any]) -> tuple[str, ...]:
    trials = found.get("trials", found.get("jobs", []))
    done = sum(each["status"] in ("finished", "stopped", "failed") for each in trials)
    best, phase = found.get("best") or {}, found.get("phase", "complete")
    return (
        str(found["point"]),
        phase,
        f"{done}/{len(trials)}" if trials else "-",
        _number(best.get("best_metric", math.nan)),
        str(best.get("id", "-")),
        str(found.get("reports", "-")),
        str(found.get("failures", "-")),
        f"{found['wall_s']:,.1f}" if "wall_s" in found else "-",
    )


def columns_text(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows of equal length as columns."""
    shown = [tuple(map(printable, row)) for row in rows]
    return "\n".join(aligned(shown, left=len(shown[0]), gap=2))


def _row(status: PopulationStatus, number: int) -> tuple[str, ...]:
    trial, sign = status.trials[number], status.frame.sign
    hyper = " ".join(f"{name}={_number(value)}" for name, value in trial.hyper.items())
    changed = " ".join([hyper, *trial.changes])
    return (
        str(number), trial.node, trial.status, changed, _number(sign * trial.metric),
        _number(sign * trial.best),
        str(trial.steps),
        f"{trial.computing_s:.1f}",
    )  # fmt: skip


def _number(value: Any) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}"
    return str(value)


def _line(status: PopulationStatus, event: Event) -> str:
    at = f"{event.at_s:9.2f} s"
    match event:
        case Reported(trial=trial, metric=metric):
            steps, node = status.trials[trial].steps, status.trials[trial].node
            worth = _number(status.frame.sign * metric)
            return (
                f"{at}  trial {trial} on {node}: step {steps}, metric {worth}  "
                f"({status.reports} reports, {status.clones} clones, {status.unused} slots unused)"
            )
        case TrialFailed(trial=trial, why=why):
            return f"{at}  trial {trial} failed: {last_line(why)}"
        case NodeFailed(node=node):
            return f"{at}  node {status.frame.nodes[node]} has left: its slots are not used"
        case Joined(node=node):
            return f"{at}  node {status.frame.nodes[node]} has joined: its slots can be used"
    return ""


def rich_table(status: PopulationStatus) -> Any:
    """Return the trials as a table of `rich`: those that run, then those that are best."""
    order = sorted(range(len(status.trials)), key=lambda number: _rank(status.trials[number]))
    rows = [_row(status, number) for number in sorted(order[:MOST])]
    return _table(HEADER, rows, f"{summed_up(status)}; {status.unused} slots unused")


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> Any:
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    table = Table(*map(escape, header), caption=caption)
    for row in rows:
        table.add_row(*map(Text, map(printable, row)))  # not markup, whatever is in it
    return table


def _rank(trial: ShownTrial) -> tuple[bool, float]:
    return trial.status != "running", -trial.best if not math.isnan(trial.best) else math.inf


JOBS_HEADER = ("job", "kind", "status", "slots", "iterations", "metric", "since submit [s]")
ORDER = ("running", "waiting", "failed", "finished", "coming")
"""Order of the jobs in a table that is too short for all."""


class JobLines:
    """Lines when a job ends or fails, and about the run once in so many seconds."""

    def __init__(self, stream: TextIO, every_s: float) -> None:
        self._stream, self._pace = stream, Pace(every_s)
        self._failures: dict[int, int] = {}
        """Of jobs, as they were said."""
        self._over: set[int] = set()

    def __call__(self, status: JobsStatus) -> None:
        for number, line in enumerate(status.jobs):
            if line.status in ("finished", "failed") and number not in self._over:
                self._over.add(number)
                self._say(
                    status, f"{status.frame.ids[number]} {line.status} after {status.jct_s(number):.2f} s"
                )
            self._look(status, number, line, status.frame.ids[number])
        self._look(status, len(status.jobs), status.opportunistic, "the opportunistic job")
        if self._pace.due():
            self._say(status, jobs_summed_up(status))

    def _look(self, status: JobsStatus, number: int, line: JobLine, name: str) -> None:
        """Say what failed since."""
        if line.failures > self._failures.get(number, 0):
            self._failures[number] = line.failures
            self._say(status, f"an assignment of {name} failed: {last_line(line.why)}")

    def _say(self, status: JobsStatus, text: str) -> None:
        self._stream.write(f"{status.at_s:9.2f} s  {printable(text)}\n")
        self._stream.flush()


def jobs_summed_up(status: JobsStatus) -> str:
    """Return a run in a line."""
    count = Counter(line.status for line in status.jobs)
    return (
        f"{status.frame.scheduler}: {count['running']} running, {count['waiting']} waiting, "
        f"{count['finished']} of {len(status.jobs)} finished, {count['failed']} failed; "
        f"{status.assignments:,} assignments in {status.at_s:,.1f} s, {status.pauses} pauses{_beside(status)}"
    )


def _beside(status: JobsStatus) -> str:
    """Return the progress of the opportunistic job, if there is one."""
    line, kind = status.opportunistic, status.frame.opportunistic
    failures = f", {line.failures} failures" if line.failures else ""
    text = f"; opportunistic job {kind}: {line.done:,} iterations, metric {_metric(line)}{failures}"
    return text if kind else ""


def jobs_text(status: JobsStatus) -> str:
    """Return the jobs, a line each, and the opportunistic job."""
    return columns_text(
        [
            JOBS_HEADER,
            *(_job_row(status, number) for number in range(len(status.jobs))),
            *_opportunistic(status),
        ]
    )


def _job_row(status: JobsStatus, number: int) -> tuple[str, ...]:
    line, frame = status.jobs[number], status.frame
    where = " ".join(f"{slot}:{frame.slots[slot]}" for slot in line.slots)
    since_s = (status.at_s if math.isnan(line.ended_s) else line.ended_s) - frame.submit_s[number]
    return (
        frame.ids[number],
        frame.kinds[number],
        line.status,
        where,
        f"{line.done}/{frame.iterations[number]}",
        _metric(line),
        f"{max(0.0, since_s):.1f}",
    )


def _opportunistic(status: JobsStatus) -> list[tuple[str, ...]]:
    """Return the line of the opportunistic job, if there is one."""
    line, kind = status.opportunistic, status.frame.opportunistic
    return (
        [("opportunistic", kind, "on idle slots", "", str(line.done), _metric(line), f"{status.at_s:.1f}")]
        if kind
        else []
    )


def _metric(line: JobLine) -> str:
    return "-" if math.isnan(line.metric) else f"{line.metric:.4g}"


def rich_jobs_table(status: JobsStatus) -> Any:
    """Return the jobs as a table of `rich`, in the order of `ORDER` if there are too many."""
    ranked = sorted(range(len(status.jobs)), key=lambda number: ORDER.index(status.jobs[number].status))
    rows = [_job_row(status, number) for number in sorted(ranked[:MOST])]
    return _table(JOBS_HEADER, [*rows, *_opportunistic(status)], jobs_summed_up(status))
