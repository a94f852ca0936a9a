"""The lineage of the best trial of a run, and how to retrain it."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Optional

from rota.core.errors import InputError, RotaError
from rota.core.population.events import Clone, Decision, Event, Grow, Hyper, Reported
from rota.execution.assignments import Assignment, CheckpointInfo, Done, FailedAnswer, checkpoint_info
from rota.execution.checkpoints import Checkpoints
from rota.execution.engine import Died, NodeWent, Workers
from rota.execution.status import PopulationFrame, parse_frame, read_into


class LineageStage(NamedTuple):
    """One interval of a lineage."""

    steps: int
    hyper: Hyper
    changes: tuple[str, ...]
    metric: float
    """The metric reported after it."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """A schedule of hyper-parameters and network changes, from the first step on."""

    run: str
    """The name of the run."""
    trial: int
    """The best trial."""
    root: int
    """The trial that began with the initial weights."""
    stages: tuple[LineageStage, ...]
    sign: float = 1.0
    """The factor that turns a metric of the journal into the reported one."""


class _Link(NamedTuple):
    """A stage and its predecessors; clones share them."""

    stage: LineageStage
    before: Optional["_Link"]
    root: int


@dataclass(slots=True)
class _Search:
    """The lineages of all trials so far, and the best one."""

    frame: PopulationFrame
    hypers: list[Hyper] = field(init=False)
    changes: list[tuple[str, ...]] = field(init=False)
    links: list[_Link | None] = field(init=False)
    best: _Link | None = None
    trial: int = -1

    def __post_init__(self) -> None:
        self.hypers = list(self.frame.hypers)
        self.changes = [()] * len(self.hypers)
        self.links = [None] * len(self.hypers)

    def see(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Reported):
                self._report(event)

    def decide(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Clone):
                trial = decision.trial
                self.links[trial] = self.links[decision.donor]
                self.hypers[trial], self.changes[trial] = decision.hyper, decision.changes
            elif isinstance(decision, Grow):
                self.changes[decision.trial] = (*self.changes[decision.trial], decision.change)

    def _report(self, event: Reported) -> None:
        trial, before = event.trial, self.links[event.trial]
        stage = LineageStage(event.steps, self.hypers[trial], self.changes[trial], event.metric)
        link = _Link(stage, before, before.root if before else trial)
        self.links[trial] = link
        if math.isnan(event.metric) or event.at_s > self.frame.deadline_s:
            return
        if self.best is None or event.metric > self.best.stage.metric:
            self.best, self.trial = link, trial


def best_lineage(file: Path) -> Lineage:
    """Return the lineage of the best report in a journal, the first among equals."""
    search, _ = read_into(file, lambda body: _Search(parse_frame(body)))
    if search.best is None:
        raise InputError(f"{file}: no trial has reported a number; there is nothing to train again")
    stages = tuple(_unrolled(search.best))[::-1]
    return Lineage(search.frame.run, search.trial, search.best.root, stages, search.frame.sign)


def _unrolled(link: _Link | None) -> Iterator[LineageStage]:
    while link is not None:
        yield link.stage
        link = link.before


WAKE_S = 0.5


class NotTrained(RotaError):
    """An interval that was trained once cannot be trained again."""


def retrain(
    lineage: Lineage, workers: Workers, checkpoints: Checkpoints, slot: int = 0, node: int = 0
) -> Iterator[Done]:
    """Train the stages of a lineage one after the other on one slot; continue if some are done already."""
    path: list[CheckpointInfo] = []
    for version, stage in enumerate(lineage.stages, start=1):
        source = path[-1] if path else None
        make = checkpoint_info(
            lineage.root, version, stage.steps, stage.hyper, stage.changes, source, f"{lineage.run} again"
        )
        workers.send(slot, Assignment(make, source, (*path[-2::-1], None)))
        yield _answer(workers, node)
        checkpoints.prune([(path[-2].trial, path[-2].version)] if len(path) > 1 else [])
        path.append(make)


def _answer(workers: Workers, node: int) -> Done:
    while True:
        for message in workers.wait(WAKE_S):
            if isinstance(message, Died):
                raise NotTrained(message.why)
            if message == NodeWent(node):
                raise NotTrained("its node is gone; try again, and it continues where it was")
            answer = getattr(message, "answer", None)
            if isinstance(answer, FailedAnswer):
                raise NotTrained(answer.why)
            if isinstance(answer, Done):
                return answer
