"""What people watch while jobs run for real: a table on a terminal, lines elsewhere."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from rota.commands.live import MOST, Pace, columns_text
from rota.core.text import printable
from rota.execution.jobs.board import Board, JobLine
from rota.execution.logs import last_line

if TYPE_CHECKING:
    from rota.execution.jobs.control import Watch

HEADER = ("job", "kind", "status", "slots", "iterations", "metric", "since submit [s]")
ORDER = ("running", "waiting", "failed", "finished", "coming")
"""Of the jobs in a table that has no room for all."""


@contextmanager
def live_jobs(stream: TextIO, every_s: float) -> "Iterator[Watch]":
    """Who is told that something has happened."""
    if not stream.isatty():
        yield JobLines(stream, every_s)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=stream), auto_refresh=False, transient=True) as shown:
        pace = Pace(every_s)

        def tell(board: Board) -> None:
            if pace.due():
                shown.update(_rich_table(board), refresh=True)

        yield tell


class JobLines:
    """A line when a job ends or fails, and how it goes once in so many seconds."""

    def __init__(self, stream: TextIO, every_s: float) -> None:
        self._stream, self._pace = stream, Pace(every_s)
        self._failures: dict[int, int] = {}
        """Of jobs, as they were said."""
        self._over: set[int] = set()

    def __call__(self, board: Board) -> None:
        for number, line in enumerate(board.jobs):
            if line.status in ("finished", "failed") and number not in self._over:
                self._over.add(number)
                self._say(board, f"{board.frame.ids[number]} {line.status} after {board.jct_s(number):.2f} s")
            self._look(board, number, line, board.frame.ids[number])
        self._look(board, len(board.jobs), board.resident, "the opportunistic job")
        if self._pace.due():
            self._say(board, jobs_summed_up(board))

    def _look(self, board: Board, number: int, line: JobLine, name: str) -> None:
        """Say what failed since."""
        if line.failures > self._failures.get(number, 0):
            self._failures[number] = line.failures
            self._say(board, f"a slice of {name} failed: {last_line(line.why)}")

    def _say(self, board: Board, text: str) -> None:
        self._stream.write(f"{board.at_s:9.2f} s  {printable(text)}\n")
        self._stream.flush()


def jobs_summed_up(board: Board) -> str:
    """A run in a line."""
    count = {status: sum(line.status == status for line in board.jobs) for status in ORDER}
    return (
        f"{board.frame.scheduler}: {count['running']} running, {count['waiting']} waiting, "
        f"{count['finished']} of {len(board.jobs)} finished, {count['failed']} failed; "
        f"{board.slices:,} slices in {board.at_s:,.1f} s, {board.pauses} pauses{_beside(board)}"
    )


def _beside(board: Board) -> str:
    """How the opportunistic job stands, if there is one."""
    line, kind = board.resident, board.frame.resident
    failures = f", {line.failures} failures" if line.failures else ""
    text = f"; opportunistic job {kind}: {line.done:,} iterations, metric {_metric(line)}{failures}"
    return text if kind else ""


def jobs_text(board: Board) -> str:
    """The jobs, a line each, and the resident."""
    return columns_text(
        [HEADER, *(_row(board, number) for number in range(len(board.jobs))), *_resident(board)]
    )


def _row(board: Board, number: int) -> tuple[str, ...]:
    line, frame = board.jobs[number], board.frame
    where = " ".join(f"{slot}:{frame.slots[slot]}" for slot in line.slots)
    since_s = (board.at_s if math.isnan(line.ended_s) else line.ended_s) - frame.submit_s[number]
    return (
        frame.ids[number],
        frame.kinds[number],
        line.status,
        where,
        f"{line.done}/{frame.iterations[number]}",
        _metric(line),
        f"{max(0.0, since_s):.1f}",
    )


def _resident(board: Board) -> list[tuple[str, ...]]:
    """The line of whoever trains beside the jobs, if there is one."""
    line, kind = board.resident, board.frame.resident
    return (
        [("resident", kind, "beside", "", str(line.done), _metric(line), f"{board.at_s:.1f}")] if kind else []
    )


def _metric(line: JobLine) -> str:
    return "-" if math.isnan(line.metric) else f"{line.metric:.4g}"


def _rich_table(board: Board) -> Any:
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    table = Table(*map(escape, HEADER), caption=jobs_summed_up(board))
    ranked = sorted(range(len(board.jobs)), key=lambda number: ORDER.index(board.jobs[number].status))
    for number in sorted(ranked[:MOST]):
        table.add_row(*map(Text, map(printable, _row(board, number))))  # not markup, whatever is in it
    for row in _resident(board):
        table.add_row(*map(Text, row))
    return table
