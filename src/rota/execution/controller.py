"""One process owns a run: it drives the policy on workers, and keeps the journal."""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rota.core.errors import InputError
from rota.core.loop import drive
from rota.core.population.costs import Costs
from rota.core.population.decisions import Hyper
from rota.core.population.events import Event
from rota.core.population.fleet import Fleet
from rota.core.population.state import State
from rota.core.population.view import Terms, Work
from rota.execution.entries import PopulationWords
from rota.execution.folder import Books
from rota.execution.journal import Journal
from rota.execution.journaled import Journaled
from rota.execution.ledger import Ledger
from rota.execution.machines import Machines
from rota.execution.picture import Frame, Picture, parse_frame
from rota.execution.spool import Spool
from rota.execution.workers import Workers

BEGAN, RESUMED, STOPPED, ENDED = "began", "resumed", "stopped", "ended"
"""Kinds of entries besides those of the loop: at the beginning and the end of each process of a run."""


@dataclass(frozen=True, slots=True)
class Undertaking:
    """What is trained, whatever the policy and the machines."""

    hypers: Sequence[Hyper]
    fleet: Fleet
    terms: Terms
    costs: Costs
    work: Work
    """What trials are expected to cost, before anything was measured."""
    seed: int = 0
    report_each: bool = True

    def state(self) -> State:
        return State(self.hypers, self.fleet, self.terms, self.costs, self.work, self.seed)

    def frame(self, run: str) -> Frame:
        hypers = [dict(hyper) for hyper in self.hypers]
        slots = [slot.node for slot in self.fleet.slots]
        return Frame(run, self.seed, hypers, slots, self.fleet.nodes, self.terms)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it, or has come of it until it was stopped."""

    state: State
    timeline: Spool
    picture: Picture
    complete: bool
    replayed: int
    """Instants that came from the journal."""
    wall_s: float
    """How long this process took."""


Watch = Callable[[Picture, Sequence[Event]], None]
"""Is told what happened, when it has been dealt with."""


def control(
    undertaking: Undertaking,
    policy: Any,
    workers: Callable[[], Workers],
    books: Books,
    *,
    asked_to_stop: Callable[[], bool] = lambda: False,
    watch: Watch = lambda picture, events: None,
) -> Outcome:
    """Run to the end, from the beginning or from wherever the journal ends. Workers end with it."""
    began = time.perf_counter()
    books.make()
    with Journal(books.journal) as journal:
        frame = _frame(journal, undertaking)
        state, picture, timeline = undertaking.state(), Picture(frame), Spool(books.spool)
        ledger = Ledger(frame.run, undertaking.fleet, undertaking.hypers, undertaking.terms.target)
        crew = workers()
        try:
            machines = Machines(
                ledger, crew, books.checkpoints,
                report_each=undertaking.report_each, asked_to_stop=asked_to_stop,
            )  # fmt: skip
            backend = Journaled(machines, journal, PopulationWords(), picture)
            for events in drive(policy, backend, state):
                timeline.take(state.timeline)
                watch(picture, events)
        finally:
            crew.close()
        complete = not state.left
        journal.append(ENDED if complete else STOPPED, {}, machines.clock.now_s())
    return Outcome(state, timeline, picture, complete, backend.replayed, time.perf_counter() - began)


def _frame(journal: Journal, undertaking: Undertaking) -> Frame:
    """That of the journal; written there if it is new."""
    for entry in journal.read():
        found = parse_frame(entry.body)
        if undertaking.frame(found.run).record() != found.record():
            raise InputError(
                f"{journal.file}: of another run than the configuration says; choose another folder"
            )
        journal.append(RESUMED, {})
        return found
    frame = undertaking.frame(secrets.token_hex(8))
    journal.append(BEGAN, frame.record())
    return frame
