"""Evaluations as figures see them: agents of different seeds together, and what was left out in turn."""

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import NamedTuple

from rota.figures.learned import in_time, without_seed
from rota.learning.outcome import Evaluation, Row
from rota.recordings.models import models


class Place(NamedTuple):
    """A recorded tree, where agents were evaluated."""

    model: str
    scenario: str
    seed: int
    """Of the recording."""

    @property
    def label(self) -> str:
        return self.scenario + (f"\nseed {self.seed}" if self.seed else "")


class Picture(NamedTuple):
    """What is drawn together: agents of one configuration, or those without one thing each."""

    name: str
    rows: dict[Place, dict[int, Row]]
    """By place, in order of time, and the seed of the agent."""

    @property
    def seeds(self) -> list[int]:
        """Of the agents."""
        return sorted({seed for rows in self.rows.values() for seed in rows})

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(place.model for place in self.rows))

    def of_model(self, model: str) -> dict[Place, dict[int, Row]]:
        return {place: rows for place, rows in self.rows.items() if place.model == model}


def pictures(evaluations: Iterable[Evaluation]) -> list[Picture]:
    """All that was evaluated; agents of different configurations that share no scenario are one picture."""
    groups: dict[str, dict[Place, dict[int, Row]]] = {}
    evaluations = list(evaluations)
    called = iter(models([row.agent for each in evaluations for row in each.rows]))
    for each in evaluations:
        seed = int(each.about.get("seed", 0))
        rows = groups.setdefault(without_seed(each.agent, seed), {})
        for row in each.rows:
            place = Place(next(called), row.agent.scenario, row.agent.seed)
            rows.setdefault(place, {})[seed] = row
    if len(groups) > 1 and _apart(list(groups.values())):
        name = PurePath(next(iter(groups))).parent.name
        return [
            Picture(name, _ordered({place: row for rows in groups.values() for place, row in rows.items()}))
        ]
    return [Picture(PurePath(name).name, _ordered(rows)) for name, rows in groups.items()]


def _apart(groups: Sequence[dict[Place, dict[int, Row]]]) -> bool:
    places = [place for rows in groups for place in rows]
    return len(set(places)) == len(places)


def _ordered(rows: dict[Place, dict[int, Row]]) -> dict[Place, dict[int, Row]]:
    models = list(dict.fromkeys(place.model for place in rows))
    times = in_time(place.scenario for place in rows)
    order = sorted(rows, key=lambda each: (models.index(each.model), times.index(each.scenario), each.seed))
    return {place: rows[place] for place in order}
