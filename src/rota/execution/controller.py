"""The controller of a population: one process that drives the policy and writes the journal."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from rota.core.cluster import Cluster
from rota.core.loop import drive
from rota.core.population.costs import AssignmentCosts
from rota.core.population.engine import PopulationEngine
from rota.core.population.events import Event, Hyper
from rota.core.population.memory import GREW
from rota.core.population.view import Terms, Work
from rota.execution.assignments import CheckpointInfo
from rota.execution.backend import PopulationBackend
from rota.execution.checkpoints import CheckpointPruner
from rota.execution.engine import Workers
from rota.execution.entries import PopulationEntries, follow
from rota.execution.folder import RunPaths, Spool
from rota.execution.journal import Journal
from rota.execution.journaled import ENDED, STOPPED, Journaled, begin_or_resume
from rota.execution.ledger import Ledger
from rota.execution.status import PopulationFrame, PopulationStatus, parse_frame


@dataclass(frozen=True, slots=True)
class PopulationSpec:
    """What is trained, whatever the policy and the engine."""

    hypers: Sequence[Hyper]
    cluster: Cluster
    terms: Terms
    costs: AssignmentCosts
    work: Work
    """The expected cost of trials, before anything is measured."""
    seed: int = 0
    report_each: bool = True
    config: str = ""
    """The digest of the configuration."""
    deadline_s: float = inf
    """When the run ends, whether trials are done or not."""
    mode: str = "max"
    """Whether a larger ("max") or a smaller reported metric ("min") is better; internally larger always
    is."""

    def state(self) -> PopulationEngine:
        """Return the state of the population before anything happens."""
        state = PopulationEngine(self.hypers, self.cluster, self.terms, self.costs, self.work, self.seed)
        state.write(deadline_s=self.deadline_s)
        state.arrays["trials"][GREW] = 1  # networks change after a report, as along growth trees
        return state

    def frame(self, run: str) -> PopulationFrame:
        """Return the facts for the first entry of the journal; `run` is the name of the run."""
        hypers = [dict(hyper) for hyper in self.hypers]
        slots = [slot.node for slot in self.cluster.all_slots]
        return PopulationFrame(
            run, self.seed, hypers, slots, self.cluster.names, self.terms, self.config, self.mode,
            self.deadline_s,
        )  # fmt: skip

    def ledger(self, run: str) -> Ledger:
        """Return an empty ledger; `run` is the name of the run."""
        return Ledger(run, self.cluster, self.hypers, self.terms.target, deadline_s=self.deadline_s)


@dataclass(frozen=True, slots=True)
class PopulationOutcome:
    """The result of a run, complete or stopped."""

    state: PopulationEngine
    timeline: Spool
    """All events; the caller closes it."""
    status: PopulationStatus
    complete: bool
    restored: int
    """Number of instants that came from the journal."""
    wall_s: float
    """Seconds that this process took."""


Watch = Callable[[PopulationStatus, Sequence[Event]], None]
"""A callback with the status and the latest events, after each instant."""


def control(
    spec: PopulationSpec,
    policy: Any,
    workers: Callable[[], Workers],
    paths: RunPaths,
    *,
    asked_to_stop: Callable[[], bool] = lambda: False,
    watch: Watch = lambda status, events: None,
    anew: bool = False,
) -> PopulationOutcome:
    """Run a population to its end, from the beginning or from the end of its journal.

    Workers are closed at the end. If no checkpoint is left, all are trained again only if `anew`.
    """
    began = time.perf_counter()
    paths.make()
    with Journal(paths.journal) as journal, CheckpointPruner(paths.checkpoints, journal) as pruner:
        frame = parse_frame(begin_or_resume(journal, paths, lambda run: spec.frame(run).record()))
        state, status, timeline = spec.state(), PopulationStatus(frame), Spool(paths.spool)
        # what is under way at the deadline is reported later, so the time of the last report does not say
        ended = spec.deadline_s < inf and any(entry.kind == ENDED for entry in journal.read())
        pool = workers()
        try:
            backend = PopulationBackend(
                spec.ledger(frame.run), pool, paths.checkpoints, pruner,
                lambda: _past(journal, spec.ledger(frame.run)),
                anew=anew, report_each=spec.report_each, asked_to_stop=asked_to_stop,
                deadline_s=-inf if ended else spec.deadline_s,
            )  # fmt: skip
            journaled = Journaled(backend, journal, PopulationEntries(), status)
            for events in drive(policy, journaled, state):
                timeline.take(state.timeline)
                watch(status, events)
        except BaseException:
            timeline.close()
            raise
        finally:
            pool.close()
        complete = not state.left or backend.is_at_deadline
        if complete:
            status.close()
        journal.append(ENDED if complete else STOPPED, {}, backend.clock.now_s())
    wall_s = time.perf_counter() - began
    return PopulationOutcome(state, timeline, status, complete, journaled.restored, wall_s)


def _past(journal: Journal, ledger: Ledger) -> dict[str, CheckpointInfo | None]:
    """Return the source of each reported checkpoint by its digest, from the journal alone."""
    ledger.past = {}
    for entry in journal.read():
        follow(ledger, entry)
    return ledger.past
