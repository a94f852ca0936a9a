"""One process owns a run: it drives the policy on workers, and keeps the journal."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rota.core.loop import drive
from rota.core.population.cluster import AssignmentCosts, PopulationCluster
from rota.core.population.events import Event, Hyper
from rota.core.population.state import PopulationState
from rota.core.population.view import Terms, Work
from rota.execution.assignments import CheckpointInfo
from rota.execution.backend import PopulationBackend
from rota.execution.checkpoints import CheckpointPruner
from rota.execution.engine import Workers
from rota.execution.entries import DECIDED, INSTANT, PopulationEntries, parse_decisions, parse_events
from rota.execution.folder import RunPaths, Spool
from rota.execution.journal import Journal
from rota.execution.journaled import ENDED, STOPPED, Journaled, begin_or_resume
from rota.execution.ledger import Ledger
from rota.execution.status import PopulationFrame, PopulationStatus, parse_frame


@dataclass(frozen=True, slots=True)
class PopulationSpec:
    """What is trained, whatever the policy and the machines."""

    hypers: Sequence[Hyper]
    fleet: PopulationCluster
    terms: Terms
    costs: AssignmentCosts
    work: Work
    """What trials are expected to cost, before anything was measured."""
    seed: int = 0
    report_each: bool = True
    config: str = ""
    """The digest of the configuration that says all this."""
    mode: str = "max"
    """Whether more of what trials report is better, or less; here more is, always."""

    def state(self) -> PopulationState:
        return PopulationState(self.hypers, self.fleet, self.terms, self.costs, self.work, self.seed)

    def frame(self, run: str) -> PopulationFrame:
        hypers = [dict(hyper) for hyper in self.hypers]
        slots = [slot.node for slot in self.fleet.slots]
        return PopulationFrame(
            run, self.seed, hypers, slots, self.fleet.nodes, self.terms, self.config, self.mode
        )

    def ledger(self, run: str) -> Ledger:
        return Ledger(run, self.fleet, self.hypers, self.terms.target)


@dataclass(frozen=True, slots=True)
class PopulationOutcome:
    """What came of it, or has come of it until it was stopped."""

    state: PopulationState
    timeline: Spool
    """To be closed by whoever has used it."""
    picture: PopulationStatus
    complete: bool
    replayed: int
    """Instants that came from the journal."""
    wall_s: float
    """How long this process took."""


Watch = Callable[[PopulationStatus, Sequence[Event]], None]
"""Is told what happened, when it has been dealt with."""


def control(
    undertaking: PopulationSpec,
    policy: Any,
    workers: Callable[[], Workers],
    books: RunPaths,
    *,
    asked_to_stop: Callable[[], bool] = lambda: False,
    watch: Watch = lambda picture, events: None,
    anew: bool = False,
) -> PopulationOutcome:
    """Run to the end, from the beginning or from wherever the journal ends. Workers end with it.

    Where no checkpoint is left they are made `anew`, if that is wanted.
    """
    began = time.perf_counter()
    books.make()
    with Journal(books.journal) as journal, CheckpointPruner(books.checkpoints, journal) as spares:
        frame = parse_frame(begin_or_resume(journal, books, lambda run: undertaking.frame(run).record()))
        state, picture, timeline = undertaking.state(), PopulationStatus(frame), Spool(books.spool)
        crew = workers()
        try:
            machines = PopulationBackend(
                undertaking.ledger(frame.run), crew, books.checkpoints, spares,
                lambda: _past(journal, undertaking.ledger(frame.run)),
                anew=anew, report_each=undertaking.report_each, asked_to_stop=asked_to_stop,
            )  # fmt: skip
            backend = Journaled(machines, journal, PopulationEntries(), picture)
            for events in drive(policy, backend, state):
                timeline.take(state.timeline)
                watch(picture, events)
        except BaseException:
            timeline.close()
            raise
        finally:
            crew.close()
        complete = not state.left
        journal.append(ENDED if complete else STOPPED, {}, machines.clock.now_s())
    return PopulationOutcome(
        state, timeline, picture, complete, backend.replayed, time.perf_counter() - began
    )


def _past(journal: Journal, ledger: Ledger) -> dict[str, CheckpointInfo | None]:
    """Digest of each checkpoint that was reported → what it was made from; from the journal alone."""
    ledger.past = {}
    for entry in journal.read():
        if entry.kind == INSTANT:
            ledger.note(parse_events(entry.body["events"]))
        elif entry.kind == DECIDED:
            ledger.take(parse_decisions(entry.body["decisions"]))
    return ledger.past
