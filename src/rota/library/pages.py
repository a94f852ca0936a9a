"""Figures and reports of runs that are in memory."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from matplotlib.figure import Figure

from rota.core.errors import InputError
from rota.core.files import write_file
from rota.figures.catalogue import POPULATIONS, figure
from rota.figures.groups import Options, groups
from rota.figures.page import write_figure
from rota.figures.population import population_groups
from rota.report.assemble import page
from rota.report.jobs import jobs_section
from rota.report.populations import population_section
from rota.results.population.run import PopulationRecord
from rota.results.run import RunRecord

Runs = Sequence[RunRecord | PopulationRecord]
R = TypeVar("R")


def of_kind(kind: type[R], runs: Runs) -> list[R]:
    """Return the runs of one kind."""
    return [run for run in runs if isinstance(run, kind)]


def draw(
    runs: Runs,
    name: str,
    file: str | os.PathLike[str] | None = None,
    window_s: tuple[float, float] | None = None,
) -> Figure:
    """Draw the figure of this name of comparable runs; the first sheet, if there are several."""
    options = Options(f'plot("{name}")', window_s=window_s)
    if populations := of_kind(PopulationRecord, runs):
        sheet = next(figure(name, POPULATIONS)(population_groups(populations), options), None)
    else:
        (group, *others) = groups(of_kind(RunRecord, runs))
        if others:
            different = "the runs are of different jobs or clusters; draw those of one at a time"
            raise InputError(f"{name}: {different}")
        sheet = next(figure(name)(group, options), None)
    if sheet is None:
        raise InputError(f"{name}: there is nothing to draw of these runs")
    if file is not None:
        write_figure(sheet.figure, Path(file))
    return sheet.figure


def write_report(runs: Runs, file: Path, title: str = "") -> Path:
    """Write a page that shows runs, a section for those that can be compared."""
    sections = [jobs_section(*each) for each in enumerate(groups(of_kind(RunRecord, runs)))]
    populations = population_groups(of_kind(PopulationRecord, runs))
    sections += [population_section(*each) for each in enumerate(populations)]
    write_file(file, page(title or sections[0].title, f'report("{file.name}")', sections))
    return file
