"""What `rota simulate` does alike for traces and populations: how many simulations there are, and on what."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rota.commands.common import say
from rota.core.errors import ConfigError

if TYPE_CHECKING:
    from rota.figures.grid_runs import ParameterGrid

Made = TypeVar("Made")

MOST = 10_000
"""Simulations that are run unless more are allowed."""
ANNOUNCED = 100
"""From here on it is said beforehand how many there are."""
LISTED = 20
"""Folders that are reused are named one by one up to so many."""
REUSED = "reused, its inputs are the same"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Those of grids. Nothing heavy is imported for them."""
    group = parser.add_argument_group("grids")
    group.add_argument(
        "--workers", type=_count, default=1, metavar="N",
        help="processes that share the simulations (1); results are the same with any number",
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


def side_by_side(
    function: Callable[..., Made],
    calls: Sequence[tuple[Any, ...]],
    workers: int,
    classes: Iterable[type],
    unit: str = "simulation",
    *,
    bar: bool = True,
) -> Iterator[tuple[int, Made]]:
    """Make calls on processes; gives position and result of each when it is done. A terminal shows a bar."""
    from tqdm import tqdm

    from rota.library.processes import call_all

    quiet = not (bar and sys.stderr.isatty())
    with tqdm(total=len(calls), unit=unit, leave=False, disable=quiet, file=sys.stderr) as shown:
        for number, made in call_all(function, calls, workers, classes):
            yield number, made
            shown.update()


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
