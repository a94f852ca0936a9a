"""Figures and reports of runs that are in memory."""

import os
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from rota.core.errors import InputError
from rota.core.files import atomic_write
from rota.figures.catalogue import figure, population_figure
from rota.figures.groups import Options, groups
from rota.figures.page import save_as
from rota.figures.population import population_groups
from rota.report.assemble import page
from rota.report.blocks import Section
from rota.report.jobs import jobs_section
from rota.report.populations import population_section
from rota.results.population.run import PopulationRecord as PopulationRecord
from rota.results.run import RunRecord as Record


def draw(
    runs: Sequence[Record],
    name: str,
    file: str | os.PathLike[str] | None = None,
    window_s: tuple[float, float] | None = None,
) -> Figure:
    """Draw the figure of this name of runs of the same jobs; the first sheet, if there are several."""
    (group, *others) = groups(runs)
    if others:
        raise InputError(f"{name}: the runs are of different jobs or clusters; draw those of one at a time")
    sheet = next(iter(figure(name)(group, Options(f'plot("{name}")', window_s=window_s))))
    return _written(sheet.figure, file)


def write_report(runs: Sequence[Record], file: Path, title: str = "") -> Path:
    """Write a page that shows runs, a section for each of their workloads."""
    sections = [jobs_section(number, group) for number, group in enumerate(groups(runs))]
    return _write_page(sections, file, title)


def draw_population(
    runs: Sequence[PopulationRecord], name: str, file: str | os.PathLike[str] | None = None
) -> Figure:
    """Draw the figure of this name of populations; the first sheet, if there are several."""
    options = Options(f'plot("{name}")')
    sheet = next(iter(population_figure(name)(population_groups(runs), options)), None)
    if sheet is None:
        raise InputError(f"{name}: there is nothing to draw of these runs")
    return _written(sheet.figure, file)


def write_population_report(runs: Sequence[PopulationRecord], file: Path, title: str = "") -> Path:
    """Write a page that shows populations."""
    groups = population_groups(runs)
    return _write_page(
        [population_section(number, group) for number, group in enumerate(groups)], file, title
    )


def _written(figure: Figure, file: str | os.PathLike[str] | None) -> Figure:
    if file is not None:
        with atomic_write(Path(file)) as stream:
            save_as(figure, stream, Path(file))
    return figure


def _write_page(sections: Sequence[Section], file: Path, title: str) -> Path:
    text = page(title or sections[0].title, f'report("{file.name}")', list(sections))
    with atomic_write(file) as stream:
        stream.write(text.encode())
    return file
