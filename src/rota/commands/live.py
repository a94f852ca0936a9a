"""What people watch while a run goes on: a table on a terminal, lines elsewhere."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rota.core.population.events import Event, Failed, Joined, Lost, Reported
from rota.core.text import printable, printable_lines
from rota.execution.logs import last_line
from rota.execution.picture import Picture, Trial

if TYPE_CHECKING:
    from rota.execution.controller import Watch

HEADER = ("trial", "node", "status", "hyper-parameters", "metric", "best", "step", "trained [s]")
MOST = 40
"""Trials in the table on a terminal: those that run, then those that are best."""
ERRORS, LINES = 3, 8
"""Different errors that are shown, and lines of each."""


@contextmanager
def live(stream: TextIO, every_s: float) -> "Iterator[Callable[[int], Watch]]":
    """Seed → who is told what happens."""
    if not stream.isatty():
        yield lambda seed: Lines(stream, every_s)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=stream), auto_refresh=False, transient=True) as shown:

        def watch(seed: int) -> "Watch":
            paced = Pace(every_s)

            def tell(picture: Picture, events: Sequence[Event]) -> None:
                if paced.due():
                    shown.update(_rich_table(picture), refresh=True)

            return tell

        yield watch


class Pace:
    """At most once in so many seconds."""

    def __init__(self, every_s: float, tick: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._tick = every_s, tick
        self._last_s = -math.inf

    def due(self) -> bool:
        now_s = self._tick()
        if now_s - self._last_s < self._every_s:
            return False
        self._last_s = now_s
        return True


class Lines:
    """A line per event, at most one in so many seconds; what went wrong is always said."""

    def __init__(self, stream: TextIO, every_s: float) -> None:
        self._stream, self._pace = stream, Pace(every_s)

    def __call__(self, picture: Picture, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Reported) and not self._pace.due():
                continue  # before any text is made: there may be many reports, and many trials to count
            if text := _line(picture, event):
                self._stream.write(f"{printable(text)}\n")
                self._stream.flush()


def summed_up(picture: Picture) -> str:
    """A run in a line: `80 reports in 4.1 s, 9 clones, …; best 0.9812 (trial 3)`."""
    done = sum(trial.over for trial in picture.trials)
    best = picture.best
    text = (
        f"{picture.reports:,} reports in {picture.at_s:,.1f} s, {picture.clones} clones, "
        f"{len(picture.failures)} failures, {done} of {len(picture.trials)} trials done"
    )
    return (
        text
        if best is None
        else f"{text}; best {picture.frame.sign * picture.trials[best].best:.4f} (trial {best})"
    )


def failures_text(picture: Picture, logs: Path) -> str:
    """The last lines of the last traceback of each error, and where all of it is."""
    errors = {last_line(failed.why): failed for failed in picture.failures}  # the last of each
    return "\n".join(_failure(failed, logs) for failed in sorted(errors.values())[-ERRORS:])


def _failure(failed: Failed, logs: Path) -> str:
    log = logs / f"slot{failed.slot}.log"
    where = f"all of it is in {log}" if log.exists() else "--json has all of it"
    lines = printable_lines(failed.why).strip().splitlines()[-LINES:]
    return "\n    ".join([f"trial {failed.trial} failed at {failed.at_s:.2f} s; {where}:", *lines])


def table_text(picture: Picture) -> str:
    """The trials, a line each."""
    return columns_text([HEADER, *(_row(picture, number) for number in range(len(picture.trials)))])


def columns_text(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows of equal length, one below the other."""
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def _row(picture: Picture, number: int) -> tuple[str, ...]:
    trial, sign = picture.trials[number], picture.frame.sign
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


def _line(picture: Picture, event: Event) -> str:
    at = f"{event.at_s:9.2f} s"
    match event:
        case Reported(trial=trial, metric=metric):
            steps, node = picture.trials[trial].steps, picture.trials[trial].node
            worth = _number(picture.frame.sign * metric)
            return (
                f"{at}  trial {trial} on {node}: step {steps}, metric {worth}  "
                f"({picture.reports} reports, {picture.clones} clones, {picture.unused} slots unused)"
            )
        case Failed(trial=trial, why=why):
            return f"{at}  trial {trial} failed: {last_line(why)}"
        case Lost(node=node):
            return f"{at}  node {picture.frame.nodes[node]} has left: its slots are not used"
        case Joined(node=node):
            return f"{at}  node {picture.frame.nodes[node]} has joined: its slots can be used"
    return ""


def _rich_table(picture: Picture) -> Any:
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    caption = f"{summed_up(picture)}; {picture.unused} slots unused"
    table = Table(*map(escape, HEADER), caption=caption)
    order = sorted(range(len(picture.trials)), key=lambda number: _rank(picture.trials[number]))
    for number in sorted(order[:MOST]):
        cells = map(printable, _row(picture, number))
        table.add_row(*map(Text, cells))  # not markup, whatever is in it
    return table


def _rank(trial: Trial) -> tuple[bool, float]:
    return trial.status != "running", -trial.best if not math.isnan(trial.best) else math.inf
