"""The lineage of the best trial of a run, and training along it once more."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Optional

from rota.core.errors import InputError, RotaError
from rota.core.population.events import Clone, Hyper, Reported
from rota.execution.assignments import Assignment, CheckpointInfo, Done, FailedAnswer, made
from rota.execution.checkpoints import Checkpoints
from rota.execution.engine import Died, NodeWent, Workers
from rota.execution.entries import DECIDED, INSTANT, parse_decisions, parse_events
from rota.execution.journal import JournalEntry, read_journal
from rota.execution.journaled import BEGAN
from rota.execution.status import PopulationFrame, parse_frame, taken_in


class LineageStage(NamedTuple):
    """A part, as it was trained."""

    steps: int
    hyper: Hyper
    changes: tuple[str, ...]
    metric: float
    """What was reported after it."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """A schedule of hyper-parameters and growth, from the first step on."""

    run: str
    """The name of the run that it is from."""
    trial: int
    """Which was best."""
    root: int
    """The trial with whose first weights it began."""
    stages: tuple[LineageStage, ...]
    sign: float = 1.0
    """What their metrics are multiplied by for people."""


class _Link(NamedTuple):
    """A stage, and those before it: shared by all who go on from here."""

    stage: LineageStage
    before: Optional["_Link"]
    root: int


@dataclass(slots=True)
class _Search:
    """What is known so far."""

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

    def take(self, entry: JournalEntry) -> None:
        if entry.kind == INSTANT:
            for event in parse_events(entry.body["events"]):
                if isinstance(event, Reported):
                    self._report(event)
        elif entry.kind == DECIDED:
            for decision in parse_decisions(entry.body["decisions"]):
                if isinstance(decision, Clone):
                    trial = decision.trial
                    self.links[trial] = self.links[decision.donor]
                    self.hypers[trial], self.changes[trial] = decision.hyper, decision.changes

    def _report(self, event: Reported) -> None:
        trial, before = event.trial, self.links[event.trial]
        stage = LineageStage(event.steps, self.hypers[trial], self.changes[trial], event.metric)
        link = _Link(stage, before, before.root if before else trial)
        self.links[trial] = link
        if not math.isnan(event.metric) and (self.best is None or event.metric > self.best.stage.metric):
            self.best, self.trial = link, trial


def best_lineage(file: Path) -> Lineage:
    """Of the trial that was best, up to the report with which it was; the first of equals."""
    search = None
    for entry in read_journal(file):
        if entry.kind == BEGAN:
            search = _Search(parse_frame(entry.body))
        elif search is not None:
            with taken_in(file, entry):
                search.take(entry)
    if search is None or search.best is None:
        raise InputError(f"{file}: no trial has reported how good it is; there is nothing to train again")
    stages = tuple(_unrolled(search.best))[::-1]
    return Lineage(search.frame.run, search.trial, search.best.root, stages, search.frame.sign)


def _unrolled(link: _Link | None) -> Iterator[LineageStage]:
    while link is not None:
        yield link.stage
        link = link.before


WAKE_S = 0.5


class NotTrained(RotaError):
    """A part that was trained once cannot be trained again."""


def retrain(
    lineage: Lineage, workers: Workers, checkpoints: Checkpoints, slot: int = 0, node: int = 0
) -> Iterator[Done]:
    """One stage after the other, on one slot; goes on where it was if that was done in part before."""
    path: list[CheckpointInfo] = []
    for version, stage in enumerate(lineage.stages, start=1):
        source = path[-1] if path else None
        make = made(
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
                raise NotTrained("its node is gone; try again, and it goes on where it was")
            answer = getattr(message, "answer", None)
            if isinstance(answer, FailedAnswer):
                raise NotTrained(answer.why)
            if isinstance(answer, Done):
                return answer
