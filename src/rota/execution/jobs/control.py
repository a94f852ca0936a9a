"""The controller of jobs: one process that drives the scheduler and writes the journal."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from rota.core.costs import RESTART
from rota.core.engine import JobsEngine
from rota.core.loop import planned
from rota.core.policy import Policy
from rota.core.timeline import Timeline
from rota.execution.assignments import CheckpointInfo
from rota.execution.checkpoints import CheckpointPruner
from rota.execution.engine import Workers
from rota.execution.folder import RunPaths
from rota.execution.jobs.assignments import SLICE, CompletedAssignment, parse_landed
from rota.execution.jobs.backend import JobsBackend, note
from rota.execution.jobs.entries import JobEntries
from rota.execution.jobs.ledger import AssignmentContext, JobLedger
from rota.execution.jobs.spec import JobsSpec
from rota.execution.jobs.status import JobsFrame, JobsStatus, StatusObserver, parse_frame
from rota.execution.journal import Journal
from rota.execution.journaled import ENDED, STOPPED, Journaled, begin_or_resume

JobsWatch = Callable[[JobsStatus], None]
"""A callback with the status, after each instant and each completed assignment."""


@dataclass(frozen=True, slots=True)
class JobsOutcome:
    """The result of a run, complete or stopped."""

    status: JobsStatus
    timeline: Timeline
    complete: bool
    restored: int
    """Number of instants that came from the journal."""
    wall_s: float
    """Seconds that this process took."""


def control_jobs(
    spec: JobsSpec,
    scheduler: str,
    policy: Policy,
    workers: Callable[[], Workers],
    paths: RunPaths,
    *,
    asked_to_stop: Callable[[], bool] = lambda: False,
    watch: JobsWatch = lambda status: None,
    anew: bool = False,
) -> JobsOutcome:
    """Run jobs to their end, from the beginning or from the end of the journal.

    Workers are closed at the end. If no checkpoint is left, all are trained again only if `anew`.
    """
    began = time.perf_counter()
    paths.make()
    with Journal(paths.journal) as journal, CheckpointPruner(paths.checkpoints, journal) as pruner:
        described = begin_or_resume(journal, paths, lambda run: _frame(spec, scheduler, run).record())
        frame = parse_frame(described)
        state = JobsEngine(
            spec.table, spec.cluster, RESTART, policy.needs, spec.preferences, known=spec.known
        )
        status = JobsStatus(frame)
        ledger = spec.ledger(frame.run)
        pool = workers()

        def completed(completed: CompletedAssignment) -> None:
            status.completed(completed)
            watch(status)

        try:
            backend = JobsBackend(
                spec, ledger, pool, paths.checkpoints, journal, pruner,
                lambda: _past(journal, spec.ledger(frame.run)),
                anew=anew, asked_to_stop=asked_to_stop, completed=completed,
            )  # fmt: skip
            for entry in journal.read():
                if entry.kind == SLICE:
                    past = parse_landed(entry)
                    note(ledger, past)
                    status.completed(past)
                    backend.since_s = past.ended_s
            journaled = Journaled(backend, journal, JobEntries(), StatusObserver(status, state))
            for instant in journaled.instants(state):
                state.apply(instant)
                plan = planned(policy, state.view)
                state.commit(plan)
                journaled.perform(plan, state)
                watch(status)
            complete = not backend.goes_on(state)
        finally:
            pool.close()
        journal.append(ENDED if complete else STOPPED, {}, backend.clock.now_s())
    return JobsOutcome(status, state.timeline(), complete, journaled.restored, time.perf_counter() - began)


def _past(journal: Journal, ledger: JobLedger) -> dict[str, tuple[CheckpointInfo | None, AssignmentContext]]:
    """Return source and context of each checkpoint by its digest, from the journal alone."""
    ledger.past = {}
    for entry in journal.read():
        if entry.kind == SLICE:
            note(ledger, parse_landed(entry))
    return ledger.past


def _frame(spec: JobsSpec, scheduler: str, run: str) -> JobsFrame:
    nodes = spec.cluster.slot_nodes().tolist()
    return JobsFrame(
        run,
        spec.seed,
        scheduler,
        list(spec.ids),
        list(spec.kinds),
        list(spec.iterations),
        list(spec.submit_s),
        [f"node{node}" for node in nodes],
        spec.opportunistic.kind if spec.opportunistic else "",
        spec.config,
    )
