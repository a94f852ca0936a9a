"""`rota plot`: draw the figures of runs, or export them for a trace viewer."""

import argparse
import math
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.figures.groups import Group
    from rota.figures.sheets import Options
    from rota.results.run import Run

RUNS = Path("results/simulate")
OUT = Path("plots")
FIRST = "make some first: bash scripts/simulate.sh"


def add_parser(subparsers: Any) -> None:
    """Add `plot`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser("plot", help="draw the figures of what has been simulated")
    add = parser.add_argument
    add("runs", nargs="*", type=Path, metavar="RUN", help=f"folders of runs, or folders of those ({RUNS})")
    add("--out", type=Path, default=OUT, metavar="FOLDER", help=f"where the figures go ({OUT})")
    add("--figure", action="extend", nargs="+", metavar="NAME", help="only these: jct, comparison, load, gantt")
    add("--normalise-to", metavar="SCHEDULER", help="compare with this one (srtf)")
    add("--window", nargs=2, type=float, metavar=("START", "END"), help="hours since the first job to show job by job")
    add("--chrome", action="store_true", help="export traces for https://ui.perfetto.dev instead of figures")
    add("--quick", action="store_true", help="coarser, and only one Gantt chart")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Draw everything that was asked for; says each file it writes."""
    from rota.figures.groups import groups
    from rota.figures.sheets import Options

    options = Options(command_of(args), args.normalise_to, _window_s(args.window), args.quick)
    write = _export if args.chrome else _draw
    names = _figures(args.figure)
    for group in groups(_read(args.runs)):
        for file in write(group, args.out / group.name, names, options):
            print(file)
    return 0
