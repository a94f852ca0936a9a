"""`rota status`: the progress of a real run, or its result; from another shell."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands.common import say
from rota.core.errors import InputError

if TYPE_CHECKING:
    from rota.execution.folder import RunPaths
    from rota.library.real_grid import RealGrid


def add_parser(subparsers: Any) -> None:
    """Add `status`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "status",
        help="say how a real run is doing",
        description="Read the journal of a run and say how it is doing. The run is not disturbed.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder that was given with --out")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(args: argparse.Namespace) -> int:
    """Print a table of trials or jobs, or JSON."""
    from rota.library.real_grid import RealGrid

    if RealGrid.is_one(args.folder):
        return _grid(args, RealGrid.read(args.folder))
    status, phase, lines = _of_one(args.folder)
    if args.json:
        lines = [json.dumps({"phase": phase, "seed": status.frame.seed, **status.record()})]
    say("\n".join(lines))
    return 0


def _grid(args: argparse.Namespace, grid: "RealGrid") -> int:
    """Print a line for each point of a grid, and a summary."""
    from rota.commands.run_progress import grid_text

    records = []
    for point in grid.points:
        found = {"point": point.name, **point.parameters, "phase": "not begun"}
        if grid.folder(point).begun():
            status, phase, _ = _of_one(grid.folder(point).path)
            found |= {"phase": phase, "seed": status.frame.seed, **status.record()}
        records.append(found)
    count = sum(each["phase"] == "complete" for each in records)
    said = f"{grid_text(records)}\n{count} of {len(records)} points complete"
    say(json.dumps({"points": records}) if args.json else said)
    return 0


def _of_one(path: Path) -> tuple[Any, str, list[str]]:
    """Return the status of a run, its phase, and what is to be printed."""
    from rota.commands.run_progress import failures_text, jobs_summed_up, jobs_text, summed_up, table_text
    from rota.execution.folder import RealFolder
    from rota.execution.jobs.status import is_of_jobs, read_jobs_status
    from rota.execution.status import read_status

    folder = RealFolder(path)
    folder.table()  # what cannot be resumed is an error here, too
    seeds = folder.begun()
    if not seeds:
        raise InputError(f"{path}: nothing has begun there yet; go on with --resume {path}")
    paths = folder.paths(seeds[-1])
    journal = paths.journal
    status: Any
    if is_of_jobs(journal):
        status, phase = read_jobs_status(journal)
        made = any(job.done for job in status.jobs)
        lines = [jobs_text(status), f"{phase}: {jobs_summed_up(status)}"]
    else:
        status, phase = read_status(journal)
        made = status.reports > 0
        failures = [failures_text(status, paths.logs)] if status.failures else []
        lines = [table_text(status), *failures, f"{phase}: {summed_up(status)}"]
        lines += [status.fruitless] if phase == "complete" and status.fruitless else []
    _note_missing(paths, phase, made=made)
    return status, phase, lines


def _note_missing(paths: "RunPaths", phase: str, *, made: bool) -> None:
    """Say what --resume would say: that there should be checkpoints, and are none."""
    from rota.execution.checkpoints import MissingStorage

    if phase == "stopped" and made and next(paths.checkpoints.names(), None) is None:
        say(f"rota: note: {MissingStorage(paths.checkpoints.folder)}", file=sys.stderr)
