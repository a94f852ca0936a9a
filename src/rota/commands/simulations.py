"""The flow of `rota simulate`, the same for traces and populations: points of a grid, tasks, and results."""

import argparse
import json
import platform
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.commands.common import compiling, say, typed, workers
from rota.core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from rota.config.grid import GridPoint
    from rota.figures.grid_runs import ParameterGrid
    from rota.results.parameters import Parameters

MOST = 10_000
"""Number of simulations that are run unless more are allowed."""
ANNOUNCED = 100
"""Number of simulations from which on it is said beforehand how many there are."""
LISTED = 20
"""Number of reused folders up to which each is named."""
REUSED = "reused, its inputs are the same"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of grids. Nothing heavy is imported for them."""
    group = parser.add_argument_group("grids")
    group.add_argument(
        "--workers", type=workers, default=1, metavar="N",
        help="processes that share the simulations (1), or ray[:ADDRESS], the CPUs of a Ray cluster; results "
        "are the same",
    )  # fmt: skip
    group.add_argument(
        "--max-simulations", type=_count, default=MOST, metavar="N",
        help=f"refuse to run more than N simulations ({MOST:,})",
    )  # fmt: skip
    group.add_argument(
        "--figure", type=Path, metavar="FILE",
        help="draw metrics against the parameters of the grid: a .png, .svg or .pdf",
    )  # fmt: skip


def check_figure(args: argparse.Namespace, table: dict[str, Any], where: str) -> None:
    """Raise an error if a figure is asked for that cannot be drawn."""
    if args.figure is None:
        return
    from rota.figures.page import check_format

    check_format(args.figure)
    if "grid" not in table:
        raise ConfigError(f"{where}: --figure: is of a grid; give a [grid], or use rota plot")


def check_points(points: int, most: int) -> None:
    """Raise an error if a grid has too many points, before they are made."""
    if points > most:
        _refuse(f"grid: {points:,} points are at least as many simulations", points, most)


def announce(simulations: int, points: int, most: int) -> None:
    """Say how many simulations there are if there are many; raise an error if there are too many."""
    of = f" of {points:,} points" if points > 1 else ""
    if simulations > most:
        _refuse(f"{simulations:,} simulations{of}", simulations, most)
    if simulations > ANNOUNCED:
        say(f"{simulations:,} simulations{of}", file=sys.stderr)


def _refuse(what: str, simulations: int, most: int) -> None:
    how = "shorten its lists (--set grid.KEY=[…]), leave policies or seeds out"
    raise ConfigError(f"{what}; the limit is {most:,}: {how}, or add --max-simulations {simulations}")


def tell_reused(folders: Sequence[Path], out: Path) -> None:
    """Say which runs are reused: each of a few, or how many."""
    if len(folders) > LISTED:
        say(f"{out}: {len(folders):,} runs are reused, their inputs are the same", file=sys.stderr)
        return
    for folder in folders:
        say(f"{folder}: {REUSED}", file=sys.stderr)


def expanded(
    args: argparse.Namespace,
    table: Mapping[str, object],
    assignments: Sequence[str],
    folder: Path,
    paths: Iterable[str],
    names: Iterable[str],
) -> "Iterator[tuple[GridPoint, dict[str, Any], Any]]":
    """Put the flags over a table; gives each point of its grid, with its table and its options.

    Values of the keys `paths`, and files in those of `names`, are found from `folder`, that of the file.
    """
    from rota.config.grid import count, expand
    from rota.config.load import override, placed

    table, where = override(table, assignments), named(args)
    check_figure(args, table, where)
    check_points(count(table, where), args.max_simulations)
    for point in expand(table, where):
        raw = placed(point.table, paths, folder, assignments, names=names)
        yield point, raw, raw.pop("options", {})


def named(args: argparse.Namespace) -> str:
    """Return what errors of a configuration begin with."""
    return str(args.config or "command line")


@dataclass(frozen=True)
class GridTask(ABC):
    """One policy at one point of a grid, ready to be simulated."""

    point: str
    """Name of the point; empty if there is no grid."""
    parameters: "Parameters"
    folder: Path | None
    """Folder that the run is written to, if it is kept."""
    command: str
    """Command line that asked for it."""
    shows_progress = False
    """Whether a simulation has a progress bar of its own, if it has the process for itself."""

    @property
    @abstractmethod
    def inputs(self) -> str:
        """The digest of all that the run follows from."""

    @property
    @abstractmethod
    def policies(self) -> tuple[Any, ...]:
        """Objects that decide, perhaps of classes from files."""

    @property
    def seeds(self) -> range:
        """Seeds that it is simulated with."""
        return range(1)

    @abstractmethod
    def found(self) -> Any:
        """Return the result in the folder if it was made from the same inputs, else None."""

    @abstractmethod
    def warm_up(self) -> None:
        """Have all that it calls compiled, once in a process."""

    @abstractmethod
    def simulated(self, seed: int) -> Any:
        """Simulate with one seed, in whichever process."""

    @abstractmethod
    def finish(self, made: Sequence[Any]) -> Any:
        """Return the result of all seeds, and write what is to be kept."""

    def check_free(self) -> None:
        """Raise an error if another run is in the folder."""
        from rota.results.run import check_replaceable

        if self.folder is not None:
            check_replaceable(self.folder, self.inputs, self.command)

    def at(self) -> dict[str, Any]:
        """Return the point as JSON says it."""
        return {"point": self.point, **self.parameters} if self.point else {}


def note_made_anew(folder: Path) -> None:
    """Say that a run takes the place of another one."""
    say(f"{folder}: made anew, it was incomplete or made from other inputs", file=sys.stderr)


class Subject(NamedTuple):
    """What differs between traces and populations."""

    unit: str
    """Word for what is compiled, with a space before it."""
    tasks: Callable[[argparse.Namespace, dict[str, Any]], Sequence[GridTask]]
    """Arguments and the table of the file → every task, in the order of the table."""
    rows: Callable[[Sequence[Any], Sequence[Any]], list[dict[str, Any]]]
    """Tasks and results → JSON."""
    text: Callable[[Sequence[Any], Sequence[Any]], str]
    """Tasks and results → the table that is printed."""
    grid: "Callable[[Sequence[Any], Sequence[Any]], ParameterGrid]"
    """Tasks and results → the figure."""


def simulate_all(args: argparse.Namespace, table: dict[str, Any], subject: Subject) -> int:
    """Simulate all that is asked for; prints a table or JSON, and draws a figure."""
    tasks = subject.tasks(args, table)
    for task in tasks if args.out and not args.replace else ():
        task.check_free()
    done = _carried_out(tasks, args, subject.unit)
    say(json.dumps(subject.rows(tasks, done)) if args.json else subject.text(tasks, done))
    if args.figure:
        draw(subject.grid(tasks, done), args.figure, typed())
    return 0


def _carried_out(tasks: Sequence[GridTask], args: argparse.Namespace, unit: str) -> list[Any]:
    """Return the result of each task: from its folder if it was made from the same inputs, else simulated."""
    from rota.library.processes import call_all, progress_bar

    done = {number: found for number, task in enumerate(tasks) if (found := task.found())}
    tell_reused([folder for number in done if (folder := tasks[number].folder)], args.out)
    left = [number for number in range(len(tasks)) if number not in done]
    with compiling(len(left), unit) as tick:
        for number in left:
            tasks[number].warm_up()
            tick()
    plan = [(number, seed) for number in left for seed in tasks[number].seeds]
    classes = {type(policy) for number in left for policy in tasks[number].policies}
    made: dict[int, dict[int, Any]] = {number: {} for number in left}
    own = args.workers == 1 and all(task.shows_progress for task in tasks)
    shown = False if own else None
    with _proof(args) as proof, progress_bar(len(plan), "simulation", shown) as bar:
        calls = [(tasks[number], seed, proof) for number, seed in plan]
        for place, result in call_all(_simulated, calls, args.workers, classes):
            number, seed = plan[place]
            made[number][seed] = result
            if len(made[number]) == len(tasks[number].seeds):
                done[number] = tasks[number].finish([each for _, each in sorted(made.pop(number).items())])
            bar.update()
    return [done[number] for number in range(len(tasks))]


def _simulated(task: GridTask, seed: int, proof: Path | None) -> Any:
    if proof is not None and not proof.exists():
        raise InputError(
            f"{proof.parent}: not there on {platform.node()}; give an --out that all nodes of the cluster see"
        )
    return task.simulated(seed)


@contextmanager
def _proof(args: argparse.Namespace) -> Iterator[Path | None]:
    """Yield a file by which workers on other nodes notice whether they see the folder of the results."""
    if args.out is None or not isinstance(args.workers, str):
        yield None
        return
    args.out.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=args.out.absolute(), prefix=".shared-") as file:
        yield Path(file.name)


def draw(grid: "ParameterGrid", file: Path, command: str) -> None:
    """Write the figure of a grid."""
    from rota.core.files import atomic_write
    from rota.figures.grid import draw_grid
    from rota.figures.page import save_as

    with atomic_write(file) as stream:
        save_as(draw_grid(grid, (f"figure: {command}",)), stream, file)
    say(f"note: drawn into {file}", file=sys.stderr)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number
