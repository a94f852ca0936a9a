"""Runs of populations as figures see them: those of the same trials on the same slots belong together."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rota.figures.colours import ALLOCATIONS
from rota.figures.page import footer
from rota.results.parameters import Labels
from rota.results.population.run import PopulationRun
from rota.results.population.summary import SlotInfo

UNNAMED = "slots "
"""What the name of a cluster begins with that has none of its own: its speeds follow."""
SAID = ("cluster", "population.trials", "population.steps", "evolution")
"""Parameters of a grid that are in the title of a group anyway."""


@dataclass(frozen=True, slots=True)
class PopulationGroup:
    """Runs that can be compared: one per allocation, in the order of the colours."""

    name: str
    """For files."""
    population: str
    evolution: str
    cluster: str
    slots: tuple[SlotInfo, ...]
    runs: tuple[PopulationRun, ...]
    label: str = ""
    """Its point of a grid: `noise=0.1`, without what the title says anyway."""

    @property
    def title(self) -> str:
        """For people."""
        return ", ".join(filter(None, [f"{self.evolved}, on {self.machines}", self.label]))

    @property
    def evolved(self) -> str:
        """`20 trials × 1,000 steps, pbt`."""
        return self.population + ("" if self.evolution == "none" else f", {self.evolution}")

    @property
    def machines(self) -> str:
        """`cluster nine`; a cluster without a name is told by its slots."""
        if self.cluster.startswith(UNNAMED):
            speeds = [slot.speed for slot in self.slots]
            return f"{len(speeds)} slots, {min(speeds):g}× to {max(speeds):g}×"
        return f"cluster {self.cluster}"

    def footer(self, command: str) -> tuple[str, ...]:
        return footer(command, tuple(dict.fromkeys(run.command for run in self.runs)))


def population_groups(runs: Iterable[PopulationRun]) -> list[PopulationGroup]:
    """In the order in which they come."""
    found: dict[tuple[object, ...], list[PopulationRun]] = {}
    for run in runs:
        of = run.summary
        found.setdefault(
            (of.population, of.evolution, of.cluster, of.slots, run.folder.path.parent), []
        ).append(run)
    labels = Labels(run.parameters for members in found.values() for run in members)
    keys = [key for key in labels.keys if key not in SAID]
    names: dict[str, int] = {}
    groups = []
    for members in found.values():
        of, point = members[0].summary, members[0].parameters
        cluster = f"{len(of.slots)} slots" if of.cluster.startswith(UNNAMED) else of.cluster
        slug = _slug(f"{cluster} {of.population.split(' × ')[0]} {of.evolution}")
        name = "-".join(filter(None, [slug, labels.file_name(point, keys)]))
        names[name] = names.get(name, 0) + 1
        name += f"-{names[name]}" if names[name] > 1 else ""
        runs, label = _ordered(members), labels.text(point, keys)
        groups.append(PopulationGroup(name, of.population, of.evolution, of.cluster, of.slots, runs, label))
    return groups


def slot_names(slots: Iterable[SlotInfo]) -> list[str]:
    """`head gpu, 8×`: the node, what it is, and its speed."""
    return [f"{slot.node} {slot.device}, {slot.speed:g}×" for slot in slots]


def _ordered(runs: list[PopulationRun]) -> tuple[PopulationRun, ...]:
    places = {name: place for place, name in enumerate(ALLOCATIONS)}
    return tuple(
        sorted(
            runs, key=lambda run: (places.get(run.summary.allocation, len(places)), run.summary.allocation)
        )
    )


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:60]
