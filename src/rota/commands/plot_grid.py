"""The figures of grids, for `rota plot`."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rota.commands.say import say
from rota.figures.catalogue import GRIDS, grid_figure

if TYPE_CHECKING:
    from rota.figures.sheets import Options
    from rota.results.folder import RunFolder
    from rota.results.population.folder import PopulationFolder


def draw_grids(
    of_traces: "Sequence[RunFolder]",
    of_populations: "Sequence[PopulationFolder]",
    out: Path,
    names: Sequence[str],
    options: "Options",
) -> Iterator[Path]:
    """Draw what was asked for of each grid; gives each file it writes."""
    from rota.figures.grid_runs import by_grid, population_grid, trace_grid
    from rota.results.population.run import read_population
    from rota.results.run import read_head

    chosen = [name for name in names if name in GRIDS]
    if not chosen:
        return
    grids = [trace_grid(runs) for runs in by_grid(read_head(folder.path) for folder in of_traces)]
    populations = by_grid(read_population(folder.path) for folder in of_populations)
    grids += [population_grid(runs) for runs in populations]
    seen: dict[str, int] = {}
    for grid in grids:
        seen[grid.name] = seen.get(grid.name, 0) + 1
        folder = grid.name if seen[grid.name] == 1 else f"{grid.name}-{seen[grid.name]}"
        for name in chosen:
            for sheet in grid_figure(name)(grid, options):
                yield from options.pen.draw(sheet.figure, out / folder / f"{sheet.name}.png")


def small(
    of_traces: "Sequence[RunFolder]", of_populations: "Sequence[PopulationFolder]"
) -> "tuple[list[RunFolder], list[PopulationFolder]]":
    """Return the runs that are not of a large grid: there, figures of each point are drawn only by name."""
    from rota.figures.grid_runs import MOST_POINTS, large
    from rota.results.population.run import read_population
    from rota.results.run import read_head

    runs = [read_head(folder.path) for folder in of_traces]
    populations = [read_population(folder.path) for folder in of_populations]
    left_out = {run.folder.path for run in large(runs)} | {run.folder.path for run in large(populations)}
    if left_out:
        how = "name figures (--figure NAME), or the folders of some points"
        note = f"{len(left_out):,} runs of grids with more than {MOST_POINTS} points are not drawn one by one"
        say(f"note: {note}; {how}", file=sys.stderr)
    return (
        [folder for folder in of_traces if folder.path not in left_out],
        [folder for folder in of_populations if folder.path not in left_out],
    )
