"""How a run of jobs is doing, from its journal alone; whoever owns it is not disturbed."""

from pathlib import Path

from rota.core.errors import InputError
from rota.execution.beginning import BEGAN, ENDED
from rota.execution.entries import DECIDED, INSTANT
from rota.execution.jobs.board import Board, parse_frame
from rota.execution.jobs.words import SLICE, parse_landed
from rota.execution.journal import Entry, has_owner, read_journal
from rota.execution.reading import taken_in


def is_of_jobs(file: Path) -> bool:
    """Whether a journal is of jobs, not of a population."""
    first = next(iter(read_journal(file)), None)
    return first is not None and isinstance(first.body, dict) and "scheduler" in first.body


def _see(board: Board, entry: Entry) -> None:
    if entry.kind == INSTANT:
        board.happened(entry.body)
    elif entry.kind == DECIDED:
        board.decided(entry.body["decisions"])
    elif entry.kind == SLICE:
        board.landed(parse_landed(entry))


def read_board(file: Path) -> tuple[Board, str]:
    """The run so far, and whether it is `running`, `complete` or `stopped`."""
    board, phase = None, "stopped"
    for entry in read_journal(file):
        if entry.kind == BEGAN:
            board = Board(parse_frame(entry.body))
        elif board is None:
            break
        elif entry.kind == ENDED:
            phase = "complete"
        else:
            with taken_in(file, entry):
                _see(board, entry)
    if board is None:
        raise InputError(f"{file}: not the journal of jobs; name the folder of a run")
    return board, "running" if phase == "stopped" and has_owner(file) else phase
