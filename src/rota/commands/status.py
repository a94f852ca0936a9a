"""`rota status`: how a run for real is doing, or what came of it; from another shell."""

import argparse
import json
from pathlib import Path
from typing import Any

from rota.core.errors import InputError


def add_parser(subparsers: Any) -> None:
    """Add `status`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "status",
        help="say how a run for real is doing",
        description="Read the journal of a run and say how it is doing. The run is not disturbed.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder that was given with --out")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(args: argparse.Namespace) -> int:
    """Print a table of trials or jobs, or JSON."""
    from rota.commands.live import summed_up, table_text
    from rota.commands.live_jobs import jobs_summed_up, jobs_text
    from rota.execution.folder import RealFolder
    from rota.execution.jobs.reading import is_of_jobs, read_board
    from rota.execution.reading import read_picture

    folder = RealFolder(args.folder)
    seeds = folder.begun()
    if not seeds:
        raise InputError(f"{args.folder}: no run is there; name the folder that was given with --out")
    journal = folder.books(seeds[-1]).journal
    if is_of_jobs(journal):
        board, phase = read_board(journal)
        if args.json:
            print(json.dumps({"phase": phase, "seed": board.frame.seed, **board.record()}))
        else:
            print(jobs_text(board))
            print(f"{phase}: {jobs_summed_up(board)}")
        return 0
    picture, phase = read_picture(journal)
    if args.json:
        print(json.dumps({"phase": phase, "seed": picture.frame.seed, **picture.record()}))
    else:
        print(table_text(picture))
        print(f"{phase}: {summed_up(picture)}")
    return 0
