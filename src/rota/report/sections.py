"""From folders to the sections of a page."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath

from rota.figures.grid_runs import by_grid, large
from rota.figures.groups import groups
from rota.figures.learned import Learned, alike, read_learned
from rota.figures.placement_learning import read_placement_learned
from rota.figures.population import population_groups
from rota.learning.outcome import read_evaluations
from rota.learning.placement.outcome import read_comparison
from rota.report.blocks import Section
from rota.report.decisions import evaluation_section, placement_comparison_section
from rota.report.fidelity import fidelity_sections
from rota.report.found import Found
from rota.report.grid import population_grid_section, trace_grid_section
from rota.report.jobs import jobs_section
from rota.report.learning import learning_section, placement_section
from rota.report.populations import population_section
from rota.results.population.run import read_population
from rota.results.run import read_head, read_run

Tick = Callable[[str], object]


def sections(found: Found, tick: Tick = lambda name: None) -> Iterator[Section]:
    """One after the other, a single one of each large grid; `tick` is told what is being worked on."""
    heads = [read_head(path) for path in found.jobs]
    populations = [read_population(path) for path in found.populations]
    for number, runs in enumerate(by_grid(heads)):
        yield trace_grid_section(number, runs)
    for number, repeated in enumerate(by_grid(populations)):
        yield population_grid_section(number, repeated)
    left_out = {run.folder.path for run in large(heads)} | {run.folder.path for run in large(populations)}
    jobs = [read_run(path) for path in found.jobs if path not in left_out]
    populations = [run for run in populations if run.folder.path not in left_out]
    for number, group in enumerate(groups(jobs)):
        yield jobs_section(number, group, tick)
    for at, each in enumerate(population_groups(populations)):
        yield population_section(at, each, tick)
    yield from fidelity_sections([*jobs, *populations])
    yield from _evaluated(found)
    yield from _learned(found)


def _evaluated(found: Found) -> Iterator[Section]:
    for number, path in enumerate(found.evaluations):
        yield evaluation_section(number, *read_evaluations(path), path)
    for number, path in enumerate(found.comparisons):
        yield placement_comparison_section(number, *read_comparison(path), path)


def families(agents: Sequence[Learned]) -> list[tuple[str, list[Learned]]]:
    """Agents whose folders lie side by side, with the name of that folder; of one alone, its own."""
    found: dict[str, list[list[Learned]]] = {}
    for group in alike(agents):
        found.setdefault(str(PurePath(group[0].name).parent), []).append(group)
    return [
        (
            PurePath(folder if len(groups) > 1 else groups[0][0].name).name,
            [a for group in groups for a in group],
        )
        for folder, groups in found.items()
    ]


def _learned(found: Found) -> Iterator[Section]:
    agents = [agent for path in found.agents if (agent := read_learned(path)).history]
    for number, (name, family) in enumerate(families(agents)):
        yield learning_section(number, name, family)
    for number, path in enumerate(found.placement_agents):
        if learned := read_placement_learned(path):
            yield placement_section(number, learned)
