"""What people watch while a run goes on: a table on a terminal, lines elsewhere."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from rota.core.population.events import Event, Failed, Joined, Lost, Reported
from rota.execution.picture import Picture, Trial

if TYPE_CHECKING:
    from rota.execution.controller import Watch

HEADER = ("trial", "node", "status", "hyper-parameters", "metric", "best", "step", "seconds")
MOST = 40
"""Trials in the table on a terminal: those that run, then those that are best."""


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
            text = _line(picture, event)
            if text and (not isinstance(event, Reported) or self._pace.due()):
                self._stream.write(f"{text}\n")
                self._stream.flush()


def summed_up(picture: Picture) -> str:
    """A run in a line: `80 reports in 4.1 s, 9 clones, …; best 0.9812 (trial 3)`."""
    done = sum(trial.over for trial in picture.trials)
    best = picture.best
    text = (
        f"{picture.reports:,} reports in {picture.at_s:,.1f} s, {picture.clones} clones, "
        f"{len(picture.failures)} failures, {done} of {len(picture.trials)} trials done"
    )
    return text if best is None else f"{text}; best {picture.trials[best].best:.4f} (trial {best})"


def table_text(picture: Picture) -> str:
    """The trials, a line each."""
    return columns_text([HEADER, *(_row(number, trial) for number, trial in enumerate(picture.trials))])


def columns_text(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows of equal length, one below the other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def _row(number: int, trial: Trial) -> tuple[str, ...]:
    hyper = " ".join(f"{name}={_number(value)}" for name, value in trial.hyper.items())
    changed = " ".join([hyper, *trial.changes])
    return (
        str(number), trial.node, trial.status, changed, _number(trial.metric), _number(trial.best),
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
            return (
                f"{at}  trial {trial} on {node}: step {steps}, metric {_number(metric)}  "
                f"({picture.reports} reports, {picture.clones} clones, {picture.unused} slots unused)"
            )
        case Failed(trial=trial, why=why):
            last = why.strip().splitlines()[-1] if why.strip() else "?"
            return f"{at}  trial {trial} failed: {last}"
        case Lost(node=node):
            return f"{at}  {picture.frame.nodes[node]} is gone"
        case Joined(node=node):
            return f"{at}  {picture.frame.nodes[node]} is there"
    return ""


def _rich_table(picture: Picture) -> Any:
    from rich.table import Table
    from rich.text import Text

    caption = f"{summed_up(picture)}; {picture.unused} slots unused"
    table = Table(*HEADER, caption=caption)
    order = sorted(range(len(picture.trials)), key=lambda number: _rank(picture.trials[number]))
    for number in sorted(order[:MOST]):
        table.add_row(*map(Text, _row(number, picture.trials[number])))  # not markup, whatever is in it
    return table


def _rank(trial: Trial) -> tuple[bool, float]:
    return trial.status != "running", -trial.best if not math.isnan(trial.best) else math.inf
