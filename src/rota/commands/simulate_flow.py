"""The flow of `rota simulate`, the same for traces and populations: points of a grid, tasks, and results."""

import argparse
import json
import os
import platform
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from rota.commands.common import compiling, draw_into, say, typed
from rota.config.bind import bind
from rota.config.grid import GridPoint, count, expand
from rota.config.load import override, placed
from rota.core.errors import ConfigError, InputError
from rota.library.processes import progress_bar, worker_pool
from rota.results.folder import PopulationFolder, ResultFolder, RunFolder

if TYPE_CHECKING:
    from rota.figures.grid_runs import ParameterGrid

ANNOUNCED = 100
"""Number of simulations from which on it is said beforehand how many there are."""
LISTED = 20
"""Number of reused folders up to which each is named."""

T = TypeVar("T")


def check_figure(args: argparse.Namespace, table: dict[str, Any], where: str) -> None:
    """Raise an error if a figure is asked for that cannot be drawn."""
    if args.figure is None:
        return
    from rota.figures.page import check_format

    check_format(args.figure)
    if "grid" not in table:
        raise ConfigError(f"{where}: --figure: is of a grid; give a [grid], or use rota plot")


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


def expanded(
    args: argparse.Namespace,
    kind: type[T],
    table: Mapping[str, object],
    assignments: Sequence[str],
    file: Path | None,
    paths: Iterable[str],
    names: Iterable[str],
) -> Iterator[tuple[GridPoint, T, Any]]:
    """Put the flags over a table; gives each point of its grid, with its configuration and its options.

    Values of the keys `paths`, and files in those of `names`, are found from the folder of `file`.
    """
    where = str(args.config or "command line")
    assignments = [*assignments, *args.set]
    table = override(table, assignments)
    check_figure(args, table, where)
    if (points := count(table, where)) > args.max_simulations:
        _refuse(f"grid: {points:,} points are at least as many simulations", points, args.max_simulations)
    for point in expand(table, where):
        raw = placed(point.table, paths, file.parent if file else Path(), assignments, names=names)
        options = raw.pop("options", {})
        yield point, bind(kind, raw, where), options


@dataclass(frozen=True)
class GridTask(ABC):
    """One policy at one point of a grid, ready to be simulated."""

    point: GridPoint
    """Point of the grid; without a name if there is none."""
    out: Path | None
    """Folder of all runs, if they are kept."""
    command: str
    """Command line that asked for it."""
    shows_progress: ClassVar[bool] = False
    """Whether a simulation has a progress bar of its own, if it has the process for itself."""
    results: ClassVar[type[ResultFolder]]
    """Folder of a run of this kind."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the policy that is compared."""

    @property
    @abstractmethod
    def inputs(self) -> str:
        """Digest of what the result follows from."""

    @property
    @abstractmethod
    def policies(self) -> tuple[Any, ...]:
        """Objects that decide, perhaps of classes from files."""

    @property
    def seeds(self) -> range:
        """Seeds that it is simulated with."""
        return range(1)

    @property
    def folder(self) -> Path | None:
        """Folder that the run is written to, if it is kept."""
        return self.out / self.point.name / self.name if self.out else None

    @abstractmethod
    def read(self, folder: Path) -> Any:
        """Return the result in a folder."""

    @abstractmethod
    def warm_up(self) -> None:
        """Have all that it calls compiled, once in a process."""

    @abstractmethod
    def simulated(self, seed: int) -> Any:
        """Simulate with one seed, in whichever process."""

    @abstractmethod
    def finish(self, made: Sequence[Any]) -> Any:
        """Return the result of all seeds, and write what is to be kept."""

    def found(self) -> Any:
        """Return the result in the folder if it was made from the same inputs, else None."""
        if self.folder is None or not self.results(self.folder).complete(self.inputs):
            return None
        return self.read(self.folder)

    def note_if_made_anew(self) -> None:
        """Say that a run takes the place of another one."""
        if self.folder is not None and self.results(self.folder).begun:
            say(f"{self.folder}: made anew, it was incomplete or made from other inputs", file=sys.stderr)

    def at(self) -> dict[str, Any]:
        """Return the point as JSON says it."""
        return {"point": self.point.name, **self.point.parameters} if self.point.name else {}


def seen_from(folder: Path, path: Path | None) -> Path | None:
    """Return a path relative to a folder; None if there is none."""
    return path and Path(os.path.relpath(path, folder))


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

    def simulate(self, args: argparse.Namespace, table: dict[str, Any]) -> int:
        """Simulate all that is asked for; prints a table or JSON, and draws a figure."""
        tasks = self.tasks(args, table)
        for task in tasks:
            for kind in (RunFolder, PopulationFolder):
                if task.folder is not None and not args.replace:
                    kind(task.folder).check_replaceable(task.inputs, task.command)
        done = _carried_out(tasks, args, self.unit)
        say(json.dumps(self.rows(tasks, done)) if args.json else self.text(tasks, done))
        if args.figure:
            from rota.figures.grid import draw_grid

            draw_into(draw_grid(self.grid(tasks, done), (f"figure: {typed()}",)), args.figure)
        return 0


def _carried_out(tasks: Sequence[GridTask], args: argparse.Namespace, unit: str) -> list[Any]:
    """Return the result of each task: from its folder if it was made from the same inputs, else simulated."""
    done = {number: found for number, task in enumerate(tasks) if (found := task.found())}
    reused = [f"{tasks[number].folder}: reused, its inputs are the same" for number in done]
    if len(reused) > LISTED:
        reused = [f"{args.out}: {len(reused):,} runs are reused, their inputs are the same"]
    for line in reused:
        say(line, file=sys.stderr)
    left = [number for number in range(len(tasks)) if number not in done]
    plan = [(number, seed) for number in left for seed in tasks[number].seeds]
    classes = {type(policy) for number in left for policy in tasks[number].policies}
    with worker_pool(args.workers if len(plan) > 1 else 1, classes) as pool, _proof(args) as proof:
        with compiling(len(left), unit) as tick:
            for number in left:
                tasks[number].warm_up()
                tick()
        made: dict[int, dict[int, Any]] = {number: {} for number in left}
        own = args.workers == 1 and all(task.shows_progress for task in tasks)
        with progress_bar(len(plan), "simulation", False if own else None) as bar:
            calls = [(tasks[number], seed, proof) for number, seed in plan]
            for place, result in pool.each(_simulated, calls):
                number, seed = plan[place]
                made[number][seed] = result
                if len(made[number]) == len(tasks[number].seeds):
                    each = [each for _, each in sorted(made.pop(number).items())]
                    done[number] = tasks[number].finish(each)
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
