"""A population by hand: two trials on two slots, a clone, a node that fails."""

from pathlib import Path

import pytest

from rota.core.cluster import Cluster, NodeChange, Slot
from rota.core.population.events import (
    Assigned,
    Cloned,
    Event,
    Idled,
    Joined,
    NodeFailed,
    Reported,
    TrialFinished,
)
from rota.results.population.repetition import Repetition, measure
from rota.results.population.run import PopulationRecord, read_population, write_population
from rota.results.population.summary import PopulationSummary, SlotInfo

CLUSTER = Cluster.of_slots(
    (Slot(0, 2.0, device="gpu"), Slot(1, 1.0)), ("a", "b"), changes=(NodeChange(30.0, 1, False),)
)
HYPERS = ({"lr": 0.1, "batch_size": 16}, {"lr": 0.2, "batch_size": 32})
CLONE = {"lr": 0.12, "batch_size": 16}


def trial_events() -> list[Event]:
    """Slot 0 is busy for 40 of 50 s, of which it communicates for 3; slot 1 loses 10 s with its node."""
    return [
        Joined(0.0, 0),
        Joined(0.0, 1),
        Assigned(0.0, 0, 1, 50),
        Assigned(0.0, 1, 1, 50),
        Reported(10.0, 0, 0, 50, 0.0, 10.0, 1.0, 0.5),
        Idled(10.0, 0),
        Reported(20.0, 1, 1, 50, 0.0, 20.0, 1.0, 0.25),
        Idled(20.0, 1),
        Cloned(20.0, 1, 0, CLONE, ("deepen 0",)),
        Assigned(20.0, 0, 1, 50),
        Assigned(20.0, 1, 1, 50),
        NodeFailed(30.0, 1),
        Reported(35.0, 0, 0, 50, 20.0, 35.0, 1.0, 0.75),
        TrialFinished(35.0, 0),
        Idled(35.0, 0),
        Assigned(35.0, 0, 1, 50),
        Reported(50.0, 0, 1, 50, 35.0, 50.0, 1.0, 0.625),
        TrialFinished(50.0, 1),
        Idled(50.0, 0),
    ]


def repetition(seed: int = 0) -> Repetition:
    return measure(
        trial_events(),
        HYPERS,
        CLUSTER,
        seed=seed,
        target=0.7,
        lower_bound_s=25.0,
        decisions=5,
        wall_s=0.001 * (seed + 1),
    )


def summary(allocation: str = "era", seeds: int = 2) -> PopulationSummary:
    slots = tuple(SlotInfo(CLUSTER.names[slot.node], slot.device, slot.speed) for slot in CLUSTER.all_slots)
    return PopulationSummary(
        allocation, "pbt", "2 trials × 100 steps", "pair", 0.7, slots, tuple(map(repetition, range(seeds)))
    )


@pytest.fixture
def events() -> list[Event]:
    return trial_events()


@pytest.fixture
def by_hand() -> PopulationSummary:
    return summary()


@pytest.fixture
def run(tmp_path: Path) -> PopulationRecord:
    """The same on disk."""
    given = summary()
    timelines = {each.seed: trial_events() for each in given.repetitions}
    about = {"config": "seeds = 2\n", "inputs": "digest", "command": "rota simulate x.toml"}
    write_population(tmp_path / "era", given, timelines, **about)
    return read_population(tmp_path / "era")
