"""`rota plot`: draw figures of runs, populations and grids, and export them for a trace viewer."""

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands.common import command_line, refuse, say
from rota.core.errors import ConfigError, InputError
from rota.figures.catalogue import FIGURES, GRIDS, POPULATIONS, check, figure

if TYPE_CHECKING:
    from rota.figures.groups import Options, RunGroup
    from rota.figures.page import Pen
    from rota.results.population.run import PopulationRecord
    from rota.results.run import RunHead


def draw_grids(
    of_traces: "Sequence[RunHead]",
    of_populations: "Sequence[PopulationRecord]",
    out: Path,
    names: Sequence[str],
    options: "Options",
) -> Iterator[Path]:
    """Draw what was asked for of each grid; gives each file it writes."""
    from rota.figures.grid_runs import by_grid, population_grid, trace_grid

    chosen = [name for name in names if name in GRIDS]
    grids = [*map(trace_grid, by_grid(of_traces)), *map(population_grid, by_grid(of_populations))]
    seen: dict[str, int] = {}
    for grid in grids if chosen else ():
        seen[grid.name] = seen.get(grid.name, 0) + 1
        folder = grid.name if seen[grid.name] == 1 else f"{grid.name}-{seen[grid.name]}"
        yield from _draw(GRIDS, grid, out / folder, chosen, options)


def small(
    of_traces: "list[RunHead]", of_populations: "list[PopulationRecord]"
) -> "tuple[list[RunHead], list[PopulationRecord]]":
    """Return the runs that are not of a large grid: there, figures of each point are drawn only by name."""
    from rota.figures.grid_runs import MOST_POINTS, large

    left_out = {run.folder.path for run in large(of_traces)}
    left_out |= {run.folder.path for run in large(of_populations)}
    if left_out:
        how = "name figures (--figure NAME), or the folders of some points"
        note = f"{len(left_out):,} runs of grids with more than {MOST_POINTS} points are not drawn one by one"
        say(f"note: {note}; {how}", file=sys.stderr)
    return (
        [run for run in of_traces if run.folder.path not in left_out],
        [run for run in of_populations if run.folder.path not in left_out],
    )


NAMES = list(GRIDS | FIGURES | POPULATIONS)
RUNS = Path("results")
OUT = Path("plots")
OTHER_RESULTS = ("recordings", "learn", "evaluate", "compare-tune")
"""Folders of RUNS in which there are no runs, but something to draw."""
SIMULATE = "rota simulate --out results/simulate"
SCRIPT = "plotting.py"
"""Beside the folder of figures in a checkout of rota."""
HOUR_S = 3600.0
QUICK_DOTS_PER_IN = 80


def add_parser(subparsers: Any) -> None:
    """Add `plot`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "plot", help="draw the figures of what has been simulated, recorded and learned"
    )
    add = parser.add_argument
    add("runs", nargs="*", type=Path, metavar="RUN", help=f"run folders, or folders of those ({RUNS})")
    add("--out", type=Path, default=OUT, metavar="FOLDER", help=f"where the figures go ({OUT})")
    add("--figure", action="append", metavar="NAME", help=f"only this; may be repeated: {', '.join(NAMES)}")
    add("--normalise-to", metavar="SCHEDULER", help="whom the others are compared with (srtf)")
    window = "what Gantt charts and traces show, in hours since the first job"
    add("--window", nargs=2, type=float, metavar=("START", "END"), help=window)
    add("--chrome", action="store_true", help="also write traces to open at https://ui.perfetto.dev")
    add("--svg", action="store_true", help="also as SVG, next to each PNG")
    add("--quick", action="store_true", help="coarser, and only one Gantt chart per trace")
    add("--count", action="store_true", help="say how many files are where, instead of the name of each")
    shipped = "in a checkout of rota: also those in plots/ that are in git, which are left as they are else"
    add("--shipped", action="store_true", help=shipped)


def run(args: argparse.Namespace) -> int:
    """Draw what was asked for; prints each file it writes, or how many there are."""
    from rota.figures.groups import Options, groups
    from rota.figures.population import population_groups
    from rota.results.folder import run_folders
    from rota.results.run import read_run

    names = args.figure or NAMES
    for name in names:
        check(name)
    window_s = _window_s(args.window)
    left: list[Path] = []
    pen, tell = _pen(args)._replace(on_kept=left.append), _no_words if args.count else _say_file
    others = [] if args.runs or args.figure else [tell(file) for file in _draw_all(args, pen)]
    if others and next(iter(run_folders(RUNS)), None) is None:
        _sum_up(others, left, args)
        say(f"note: no runs in {RUNS}; make some: {SIMULATE}", file=sys.stderr)
        return 0
    of_traces, of_populations = _complete(args.runs)

    if not of_traces:
        no_effect = "is for runs of traces, and there are only populations; leave it out"
        refuse({"--normalise-to": args.normalise_to, "--chrome": args.chrome}, no_effect)
    options = Options(command_of(args), args.normalise_to, window_s, args.quick, pen)
    drawn = list(others)
    for file in draw_grids(of_traces, of_populations, args.out, names, options):
        drawn.append(_say_file(file))
    if not args.figure:
        of_traces, of_populations = small(of_traces, of_populations)
    if of_populations:
        repeated = population_groups(of_populations)
        drawn += map(tell, _draw(POPULATIONS, repeated, args.out / "populations", names, options))
    for group in groups(read_run(run.folder.path) for run in of_traces):
        files = _draw(FIGURES, group, args.out / group.name, names, options)
        traces = _export(group, args.out / group.name, options) if args.chrome else ()
        drawn += map(tell, chain(files, traces))
    _sum_up(drawn, left, args)
    if not drawn and not left:
        what = "runs of traces" if of_traces else "populations"
        what += " without a grid" if set(names) & set(GRIDS) else ""
        raise ConfigError(f"--figure {' '.join(names)}: there are only {what}; name a figure of those")
    return 0


def _say_file(file: Path) -> Path:
    say(file)
    return file


def _no_words(file: Path) -> Path:
    return file


def _sum_up(files: list[Path], left: list[Path], args: argparse.Namespace) -> None:
    """Say how many figures and traces are in each folder, if that is asked for; and what was left."""
    for folder in dict.fromkeys(file.parent for file in files) if args.count else ():
        names = {file.stem for file in files if file.parent == folder and file.suffix != ".json"}
        traces = sum(file.parent == folder and file.suffix == ".json" for file in files)
        kinds = ((len(names), "figure"), (traces, "trace"))
        said = " and ".join(f"{count} {kind}{'s' * (count != 1)}" for count, kind in kinds if count)
        say(f"{said} in {folder}")
    if left:
        kept = ", ".join(map(str, left))
        say(f"note: in git, and left as it was: {kept}; --shipped draws it, too", file=sys.stderr)


def _pen(args: argparse.Namespace) -> "Pen":
    from rota.figures.page import PEN, Pen

    kept = frozenset[Path]() if args.shipped else _in_git(args.out)
    return Pen(args.svg, QUICK_DOTS_PER_IN if args.quick else PEN.dots_per_in, kept)


def _in_git(out: Path) -> frozenset[Path]:
    """Return the figures of a checkout of rota that are in git; none elsewhere."""
    folder = out.resolve()
    if not (folder.parent / SCRIPT).is_file() or not folder.is_dir():
        return frozenset()
    command = ["git", "-C", str(folder), "ls-files", "-z", "--", "*.png", "*.svg"]
    try:
        found = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):  # no git, or a checkout without it
        return frozenset()
    return frozenset(folder / os.fsdecode(name) for name in found.split(b"\0") if name)


def _draw_all(args: argparse.Namespace, pen: "Pen") -> Iterator[Path]:
    """Draw what was recorded, learned and evaluated, if anything was."""
    if not any((RUNS / name).is_dir() for name in OTHER_RESULTS):
        return
    from rota.figures.files import draw_all

    yield from draw_all(RUNS, args.out, command_of(args), pen)


def command_of(args: argparse.Namespace) -> str:
    """Return the command line that says the same, for the footers."""
    out = ["--out"] if args.out != OUT else []
    more = ("--figure", "--normalise-to", "--window+", "--chrome", "--svg", "--quick")
    return command_line(args, "runs", *out, *more)


def _window_s(hours: list[float] | None) -> tuple[float, float] | None:
    if hours is None:
        return None
    start, end = hours
    if not (math.isfinite(start) and math.isfinite(end) and start < end):
        raise ConfigError(f"--window {start:g} {end:g}: the start must come before the end")
    return start * HOUR_S, end * HOUR_S


def _complete(paths: list[Path]) -> "tuple[list[RunHead], list[PopulationRecord]]":
    """Return all complete runs below the paths, of traces and of populations.

    Others are left out with a note, or refused if asked for by name.
    """
    from rota.results.folder import PopulationFolder, complete_run, run_folders
    from rota.results.population.run import read_population
    from rota.results.run import read_head

    folders = [folder for path in paths or [RUNS] for folder in run_folders(path)]
    if not folders:
        where = ", ".join(map(str, paths or [RUNS]))
        if any(True for path in paths for _ in path.rglob("recording.json")):
            raise InputError(f"{where}: recordings, not runs; rota recordings describe FOLDER --figure FILE")
        raise InputError(f"no runs in {where}; make some first: {SIMULATE}")
    found = {folder.path.resolve(): folder.path for folder in folders}.values()
    runs = {path: complete_run(path) for path in found}
    for path in (path for path, run in runs.items() if run is None):
        if path in paths or not any(runs.values()):
            raise InputError(f"{path}: not a complete run; make it again: {SIMULATE}")
        say(f"note: {path}: not a complete run, left out", file=sys.stderr)
    populations = [path for path, run in runs.items() if isinstance(run, PopulationFolder)]
    of_traces = [path for path, run in runs.items() if run and path not in populations]
    return [read_head(path) for path in of_traces], [read_population(path) for path in populations]


def _draw(
    figures: Mapping[str, str], subject: Any, out: Path, names: Sequence[str], options: "Options"
) -> Iterator[Path]:
    """Draw those of the figures that were asked for; gives each file it writes."""
    for name in names:
        if name in figures:
            for sheet in figure(name, figures)(subject, options):
                yield from options.pen.draw(sheet.figure, out / f"{sheet.name}.png")


def _export(group: "RunGroup", out: Path, options: "Options") -> Iterator[Path]:
    from rota.results.chrome import write_chrome_trace

    for each in group.runs:
        run = each.run
        first_s = float(run.jobs.submit_s[0])
        start_s, end_s = options.window_s or (-math.inf, math.inf)
        file = out / f"trace-{each.file_name}.json"
        write_chrome_trace(file, run.timeline(), run.jobs, run.cluster, (first_s + start_s, first_s + end_s))
        yield file
