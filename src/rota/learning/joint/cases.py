"""Cases of placement and growth: trials on growth trees, a cluster of GPUs, and a deadline."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rota.core.cluster import Cluster, Slot
from rota.core.errors import InputError
from rota.core.files import located
from rota.core.grouped import grouped
from rota.recordings.folder import CsvSheet
from rota.recordings.growth import GrowthTree
from rota.recordings.profile import Profiles, read_profiles
from rota.simulator.population import PopulationScenario
from rota.simulator.trees import GPUS, TreeLandscape, TreeSet

TRIALS, SLOTS, PER_NODE = (4, 16), (3, 12), 4
SHARES = (0.2, 1.0)
"""Share of the trials that could finish alone until the deadline."""
MIXED = 0.5
"""Probability that trials are drawn from all networks of the data set, if there are several."""


@dataclass(frozen=True, eq=False)
class JointCase:
    """Trials on trees, the slots that they share, and when the run ends."""

    number: int
    trees: TreeSet
    places: tuple[int, ...]
    """Trial → its tree."""
    cluster: Cluster
    deadline_s: float

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The models and data sets of the trials."""
        found = {(self.trees.trees[tree].model, self.trees.trees[tree].data) for tree in self.places}
        return tuple(sorted(found))

    @cached_property
    def scene(self) -> PopulationScenario:
        """The scenario of a simulation."""
        hypers = tuple(self.trees.hypers[tree] for tree in self.places)
        return PopulationScenario(
            hypers, self.cluster, self.trees.terms(self.places), deadline_s=self.deadline_s
        )

    def landscape(self) -> TreeLandscape:
        """Return new costs and metrics of the trials."""
        return self.trees.landscape(self.places)

    def row(self) -> tuple[str | int | float, ...]:
        """Return the case as a line of a table."""
        slots = " ".join(f"{slot.device}@{slot.node}" for slot in self.cluster.all_slots)
        trials = " ".join(_short(self.trees.trees[tree]) for tree in self.places)
        return self.number, self.pairs[0][1], trials, slots, self.deadline_s


COLUMNS = {"case": "", "data": "", "trials": "", "slots": "", "deadline_s": "s"}


def sheet(cases: Iterable[JointCase]) -> CsvSheet:
    """Return cases as a table to write down."""
    return CsvSheet(COLUMNS, [case.row() for case in cases])


def _short(tree: GrowthTree) -> str:
    return f"{tree.model}:lr={tree.hyper.get('lr', math.nan):g}:seed{tree.seed}"


class CaseGenerator:
    """Random cases from growth trees; those of a seed are always the same."""

    def __init__(self, trees: Sequence[GrowthTree], profiles: Profiles | None = None) -> None:
        self.profiles = profiles or read_profiles(located(GPUS))
        self.sets = [TreeSet(tuple(group)) for group in grouped((tree.data, tree) for tree in trees).values()]
        """The trees of each data set."""
        self._pairs: list[tuple[int, list[int]]] = []
        """Every model and data set: the set of its trees, and which they are."""
        for number, found in enumerate(self.sets):
            models = grouped((tree.model, at) for at, tree in enumerate(found.trees))
            self._pairs += [(number, list(group)) for group in models.values()]
        few = [group for _, group in self._pairs if len(group) < TRIALS[0]]
        if few or not self._pairs:
            raise InputError(
                f"growth trees: a case has {TRIALS[0]} trials or more, each on its own tree; give at least "
                "as many of each network"
            )

    def draw(self, count: int, seed: int) -> list[JointCase]:
        """Return so many cases of a seed."""
        return [self.case(number, seed) for number in range(count)]

    def case(self, number: int, seed: int) -> JointCase:
        """Return a case of a seed; models take turns, so that there are equally many of each."""
        random = np.random.default_rng((seed, number, CASE_DRAWS))
        at, group = self._pairs[number % len(self._pairs)]
        trees = self.sets[at]
        if random.random() < MIXED:
            group = list(range(len(trees.trees)))
        most = min(TRIALS[1], len(group))
        trials = int(random.integers(TRIALS[0], most, endpoint=True))
        places = tuple(int(tree) for tree in random.choice(group, trials, replace=False))
        cluster = trees.with_speeds(self._slots(random), self.profiles)
        share = random.uniform(*SHARES)
        alone_s = finish_alone_s(trees, places, cluster, math.ceil(share * trials))
        return JointCase(number, trees, places, cluster, alone_s)

    def _slots(self, random: np.random.Generator) -> Cluster:
        """Draw nodes of one kind of device each, until there are enough slots."""
        devices = sorted(self.profiles.devices)
        used = random.permutation(devices)[: int(random.integers(1, len(devices), endpoint=True))]
        count = int(random.integers(*SLOTS, endpoint=True))
        slots: list[Slot] = []
        node = 0
        while len(slots) < count:
            device = str(used[node] if node < len(used) else random.choice(used))
            size = min(int(random.integers(1, PER_NODE, endpoint=True)), count - len(slots))
            slots += [Slot(node, device=device)] * size
            node += 1
        return Cluster.of_slots(tuple(slots))


CASE_DRAWS = 20
"""Part of the seed of cases, which distinguishes it from other draws."""


def finish_alone_s(trees: TreeSet, places: Sequence[int], cluster: Cluster, count: int) -> float:
    """Return when so many of the trials, the shortest, are done if there are no others and none grows.

    The longest is placed first, each where it is done soonest.
    """
    kinds = [trees.kinds[trees.nodes.structure[trees.nodes.start[tree]]].name for tree in places]
    alone_s = [trees.alone_s(tree) for tree in places]
    chosen = sorted(range(len(places)), key=alone_s.__getitem__)[:count]
    ends_s = [0.0] * len(cluster.all_slots)
    for trial in reversed(chosen):
        each = [
            end_s + alone_s[trial] / slot.speed_of(kinds[trial])
            for end_s, slot in zip(ends_s, cluster.all_slots, strict=True)
        ]
        best = min(range(len(each)), key=each.__getitem__)
        ends_s[best] = each[best]
    return max(ends_s)
