"""The figures of populations, for `rota plot`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rota.figures.catalogue import POPULATIONS, population_figure

if TYPE_CHECKING:
    from rota.figures.sheets import Options
    from rota.results.population.folder import PopulationFolder


def draw_populations(
    folders: "Sequence[PopulationFolder]", out: Path, names: Sequence[str], options: "Options"
) -> Iterator[Path]:
    """Draw what was asked for of complete runs; gives each file it writes."""
    if not folders:
        return
    from rota.figures.population import population_groups
    from rota.results.population.run import read_population

    groups = population_groups(read_population(folder.path) for folder in folders)
    for name in names:
        if name in POPULATIONS:
            for sheet in population_figure(name)(groups, options):
                yield from options.pen.draw(sheet.figure, out / f"{sheet.name}.png")
