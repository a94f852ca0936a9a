"""Small results on disk, written down by hand."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rota.core.cluster import Cluster, Slot
from rota.core.population.events import (
    Assigned,
    Cloned,
    Event,
    Idled,
    Joined,
    NodeFailed,
    Reported,
    Stopped,
    TrialFinished,
)
from rota.core.timeline import EVENT, EventKind, Timeline
from rota.learning.files import HistoryRow, write_history
from rota.learning.files import PlacementHistoryRow as Update
from rota.learning.outcome import Baselines, Evaluation, EvaluationOutcome, write_evaluations
from rota.learning.outcome import EvaluationRow as Scenario
from rota.learning.placement.outcome import ComparedRow, PlacementComparison, write_comparison
from rota.policies.agents import AgentFacts, write_agent_file
from rota.results.jobs import JobColumns
from rota.results.population.repetition import measure
from rota.results.population.run import PopulationRecord, read_population, write_population
from rota.results.population.summary import PopulationSummary, SlotInfo
from rota.results.run import RunRecord, read_run, write_run

Happened = tuple[float, EventKind, int, Sequence[int], float]
K = EventKind

SRTF: list[Happened] = [
    (0, K.ARRIVED, 0, (), 0),
    (0, K.STARTED, 0, (0,), 1),
    (2, K.ARRIVED, 1, (), 0),
    (2, K.PAUSED, 0, (), 8),
    (2, K.STARTED, 1, (0, 1), 1),
    (4, K.ARRIVED, 2, (), 0),
    (6, K.FINISHED, 1, (), 0),
    (6, K.STARTED, 0, (1,), 1),
    (6, K.STARTED, 2, (0,), 1),
    (9, K.FINISHED, 2, (), 0),
    (9, K.MOVED, 0, (0,), 1),
    (14, K.FINISHED, 0, (), 0),
]
"""a (10 s) makes way for b (4 s on both slots), goes on beside c (3 s), and moves when that is done."""
FIFO: list[Happened] = [
    (0, K.ARRIVED, 0, (), 0),
    (0, K.STARTED, 0, (0,), 1),
    (2, K.ARRIVED, 1, (), 0),
    (4, K.ARRIVED, 2, (), 0),
    (10, K.FINISHED, 0, (), 0),
    (10, K.STARTED, 1, (0, 1), 1),
    (14, K.FINISHED, 1, (), 0),
    (14, K.STARTED, 2, (0,), 1),
    (17, K.FINISHED, 2, (), 0),
]
"""One after the other."""
CLUSTER = Cluster.of_slots((Slot(0, 2.0), Slot(1, 1.0)), ("a", "b"))


def timeline_of(rows: Sequence[Happened]) -> Timeline:
    events = np.zeros(len(rows), EVENT)
    begin = 0
    for record, (at_s, kind, job, slots, value) in zip(events, rows, strict=True):
        record["at_s"], record["kind"], record["job"], record["value"] = at_s, kind, job, value
        record["begin"], record["gpus"] = begin, len(slots)
        begin += len(slots)
    return Timeline(events, np.array([slot for row in rows for slot in row[3]], np.int32))


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunRecord]:
    """Gives a function that writes a run of three jobs on a node with two slots, and reads it back."""

    def make(
        name: str,
        rows: Sequence[Happened] = SRTF,
        ids: Sequence[str] = ("a", "b", "c"),
        models: Sequence[str] = ("bert", "vgg16"),
        under: str = "jobs",
        **changes: Any,
    ) -> RunRecord:
        jobs = JobColumns(
            name="by hand",
            ids=tuple(ids),
            model=np.array([0, 1, 0]),
            models=tuple(models),
            gpus=np.array([1.0, 2.0, 1.0]),
            submit_s=np.array([0.0, 2.0, 4.0]),
            iterations=np.array([10.0, 4.0, 3.0]),
            iteration_s=np.ones(3),
        )
        about: dict[str, Any] = {
            "scheduler": name,
            "workload": jobs,
            "cluster": Cluster.uniform(1, 2),
            "timeline": timeline_of(rows),
            "config_text": "",
            "inputs": "digest",
            "wall_s": 1.0,
            "command": "rota simulate --trace jobs.csv",
        }
        write_run(tmp_path / under / name, **about | changes)
        return read_run(tmp_path / under / name)

    return make


@pytest.fixture
def two_runs(make_run: Callable[..., RunRecord]) -> list[RunRecord]:
    """The same jobs under srtf and fifo."""
    return [make_run("fifo", FIFO), make_run("srtf")]


@pytest.fixture
def fifo_rows() -> list[Happened]:
    """What happens to the three jobs under fifo."""
    return FIFO


@pytest.fixture
def make_grid(make_run: Callable[..., RunRecord]) -> Callable[[int], None]:
    """Gives a function that writes so many loads under fifo and srtf, each on another cluster."""

    def make(loads: int) -> None:
        for load in range(1, loads + 1):
            for name, rows in (("fifo", FIFO), ("srtf", SRTF)):
                make_run(
                    name, rows, under=f"grid/load={load}", parameters={"workload.load": load},
                    cluster=Cluster.uniform(1, load + 1),
                )  # fmt: skip

    return make


def make_events(slower: float = 1.0) -> list[Event]:
    """Trial 1 goes on as trial 0 at 20 s; its next part is lost with node b at 30 s, and it is stopped."""
    s = slower
    return [
        Joined(0.0, 0),
        Joined(0.0, 1),
        Assigned(0.0, 0, 2, 100),
        Assigned(0.0, 1, 1, 50),
        Reported(10.0 * s, 0, 0, 50, 0.0, 10.0 * s, 1.0 * s, 0.5),
        Reported(20.0 * s, 1, 1, 50, 0.0, 20.0 * s, 0.0, 0.25),
        Idled(20.0 * s, 1),
        Cloned(20.0 * s, 1, 0, {}, ()),
        Assigned(20.0 * s, 1, 1, 50),
        NodeFailed(30.0 * s, 1),
        Stopped(30.0 * s, 1),
        Reported(40.0 * s, 0, 0, 50, 10.0 * s, 40.0 * s, 0.0, 0.75),
        Idled(40.0 * s, 0),
        TrialFinished(40.0 * s, 0),
    ]


@pytest.fixture(name="make_events")
def _timeline() -> Callable[..., list[Event]]:
    return make_events


@pytest.fixture
def make_population(tmp_path: Path) -> Callable[..., PopulationRecord]:
    """Gives a function that writes a population of two trials on two nodes, and reads it back."""

    def make(
        name: str,
        slower: float = 1.0,
        seeds: int = 1,
        command: str = "rota simulate --population 2",
        parameters: dict[str, Any] | None = None,
    ) -> PopulationRecord:
        timelines = {seed: make_events(slower) for seed in range(seeds)}
        summary = PopulationSummary(
            allocation=name,
            evolution="pbt",
            population="2 trials × 100 steps",
            cluster="two",
            target=None,
            slots=(SlotInfo("a", "gpu", 2.0), SlotInfo("b", "cpu", 1.0)),
            repetitions=tuple(
                measure(
                    events,
                    [{}, {}],
                    CLUSTER,
                    seed=seed,
                    target=1.0,
                    lower_bound_s=20.0,
                    decisions=4,
                    wall_s=0.5,
                )
                for seed, events in timelines.items()
            ),
        )
        folder = tmp_path / ("real" if "rota run" in command else "populations") / name
        folder = tmp_path / "grid" / str(parameters) / name if parameters else folder
        write_population(
            folder, summary, timelines, config="", inputs="digest", command=command, parameters=parameters
        )
        return read_population(folder)

    return make


@pytest.fixture
def make_agent(tmp_path: Path) -> Callable[..., Path]:
    """Gives a function that writes what an agent says of how it learned."""

    def make(name: str, seed: int = 0) -> Path:
        folder = tmp_path / "learned" / name / f"seed{seed}"
        rows = [
            HistoryRow(0, 10 * (at + 1), -0.1 * at, 0.0, 0.5 + 0.01 * at, 1.0, 0.1, 1.0) for at in range(10)
        ]
        write_history(folder, rows)
        stage = {"trees": ["convnet2/early", "convnet2/late"], "episodes": 100, "temperature": 1.0}
        about = {"seed": seed, "stages": [stage], "started_from": ""}
        made = {"command": "rota learn --pooled"}
        facts = AgentFacts(kind="adaptation", network="structural", about=about, provenance=made, sha256="")
        write_agent_file(folder, facts, {})
        return folder

    return make


@pytest.fixture
def placement_agent(tmp_path: Path) -> Path:
    """An agent that places trials: how it learned, and how good it is in two cases."""
    folder = tmp_path / "place"
    write_history(
        folder, [Update(at, 2.0 * at, 100, 1.5 - 0.1 * at, 2.0, 0.01) for at in range(1, 4)], Update
    )
    made = {"command": "rota learn config/learn/place.toml"}
    facts = AgentFacts(kind="placement", network="scorer", provenance=made, sha256="")
    write_agent_file(folder, facts, {})
    tried = [
        ComparedRow(0, 4, 10, 2.0, 0.0, {"fifo": 2.0, "learned": 1.0}, 4.0),
        ComparedRow(0, 4, 10, 2.0, 0.5, {"fifo": 3.0, "learned": 1.5}, 6.0),
    ]
    write_comparison(folder, PlacementComparison(tuple(tried)), "rota evaluate --agent place")
    return folder


def scenario(name: str, rank: int, *, seen: bool = True) -> Scenario:
    chances = ((0.1, 0.2, 0.7), (0.6, 0.3, 0.1))
    outcome = EvaluationOutcome(
        name, "ConvNet2", 0, (2, 0), ("deepen 1", "nothing"), ("nothing", "deepen 0", "deepen 1"),
        0.6, rank, 9, 1.0 if rank == 1 else 0.5, chances,
    )  # fmt: skip
    return Scenario(outcome, Baselines(0.5, 0.55, None, None, 0.61, 0.54), seen)


@pytest.fixture
def evaluated(tmp_path: Path) -> Path:
    """What was evaluated of one agent: it found the best of nine sequences in one of two scenarios."""
    rows = (scenario("early", 1), scenario("late", 3, seen=False))
    folder = tmp_path / "evaluated"
    write_evaluations(folder, [Evaluation("learned/joint", {"seed": 0}, rows)], "rota evaluate --agent x")
    return folder
