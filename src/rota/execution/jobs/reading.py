"""How a run of jobs is doing, from its journal alone; whoever owns it is not disturbed."""

from pathlib import Path

from rota.core.errors import InputError
from rota.execution.controller import BEGAN, ENDED
from rota.execution.entries import DECIDED, INSTANT
from rota.execution.jobs.board import Board, Frame
from rota.execution.jobs.words import SLICE, parse_landed
from rota.execution.journal import has_owner, read_journal


def is_of_jobs(file: Path) -> bool:
    """Whether a journal is of jobs, not of a population."""
    first = next(iter(read_journal(file)), None)
    return first is not None and "scheduler" in first.body


def read_board(file: Path) -> tuple[Board, str]:
    """The run so far, and whether it is `running`, `complete` or `stopped`."""
    board, phase = None, "stopped"
    for entry in read_journal(file):
        if entry.kind == BEGAN:
            board = Board(Frame(**entry.body))
        elif board is None:
            break
        elif entry.kind == INSTANT:
            board.happened(entry.body)
        elif entry.kind == DECIDED:
            board.decided(entry.body["decisions"])
        elif entry.kind == SLICE:
            board.landed(parse_landed(entry))
        elif entry.kind == ENDED:
            phase = "complete"
    if board is None:
        raise InputError(f"{file}: not the journal of jobs; name the folder of a run")
    return board, "running" if phase == "stopped" and has_owner(file) else phase
