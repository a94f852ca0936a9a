"""One process owns a run of jobs: it drives the scheduler on workers, and keeps the journal."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from rota.core.costs import RESTART
from rota.core.loop import Policy, drive
from rota.core.state import JobsState
from rota.core.timeline import Timeline
from rota.execution.assignments import CheckpointInfo
from rota.execution.checkpoints import CheckpointPruner
from rota.execution.engine import Workers
from rota.execution.folder import RunPaths
from rota.execution.jobs.assignments import SLICE, CompletedAssignment, JobEntries, parse_landed
from rota.execution.jobs.backend import JobsBackend, note
from rota.execution.jobs.ledger import JobLedger, Told
from rota.execution.jobs.spec import JobsSpec
from rota.execution.jobs.status import JobsFrame, JobsStatus, StatusObserver, parse_frame
from rota.execution.journal import Journal
from rota.execution.journaled import ENDED, STOPPED, Journaled, begin_or_resume

JobsWatch = Callable[[JobsStatus], None]
"""Is told that something has happened."""


@dataclass(frozen=True, slots=True)
class JobsOutcome:
    """What came of it, or has come of it until it was stopped."""

    board: JobsStatus
    timeline: Timeline
    complete: bool
    replayed: int
    """Instants that came from the journal."""
    wall_s: float
    """How long this process took."""


def control_jobs(
    venture: JobsSpec,
    scheduler: str,
    policy: Policy,
    workers: Callable[[], Workers],
    books: RunPaths,
    *,
    asked_to_stop: Callable[[], bool] = lambda: False,
    watch: JobsWatch = lambda board: None,
    anew: bool = False,
) -> JobsOutcome:
    """Run to the end, from the beginning or from wherever the journal ends. Workers end with it.

    Where no checkpoint is left they are made `anew`, if that is wanted.
    """
    began, needs = time.perf_counter(), policy.needs
    books.make()
    with Journal(books.journal) as journal, CheckpointPruner(books.checkpoints, journal) as spares:
        described = begin_or_resume(journal, books, lambda run: _frame(venture, scheduler, run).record())
        frame = parse_frame(described)
        state = JobsState(
            venture.table, venture.cluster, RESTART, needs.sharing, needs.own, needs.own_slots,
            venture.preferences,
        )  # fmt: skip
        board = JobsStatus(frame)
        ledger = venture.ledger(frame.run)
        crew = workers()

        def landed(landed: CompletedAssignment) -> None:
            board.landed(landed)
            watch(board)

        try:
            machines = JobsBackend(
                venture, ledger, crew, books.checkpoints, journal, spares,
                lambda: _past(journal, venture.ledger(frame.run)),
                anew=anew, asked_to_stop=asked_to_stop, landed=landed,
            )  # fmt: skip
            for entry in journal.read():
                if entry.kind == SLICE:
                    past = parse_landed(entry)
                    note(ledger, past)
                    board.landed(past)
                    machines.since_s = past.ended_s
            backend = Journaled(machines, journal, JobEntries(), StatusObserver(board, state))
            for _ in drive(policy, backend, state):
                watch(board)
            complete = not machines.goes_on(state)
        finally:
            crew.close()
        journal.append(ENDED if complete else STOPPED, {}, machines.clock.now_s())
    return JobsOutcome(board, state.timeline(), complete, backend.replayed, time.perf_counter() - began)


def _past(journal: Journal, ledger: JobLedger) -> dict[str, tuple[CheckpointInfo | None, Told]]:
    """Digest of what each slice made → what it was made from, and told; from the journal alone."""
    ledger.past = {}
    for entry in journal.read():
        if entry.kind == SLICE:
            note(ledger, parse_landed(entry))
    return ledger.past


def _frame(venture: JobsSpec, scheduler: str, run: str) -> JobsFrame:
    nodes = venture.cluster.slot_nodes().tolist()
    return JobsFrame(
        run,
        venture.seed,
        scheduler,
        list(venture.ids),
        list(venture.kinds),
        list(venture.iterations),
        list(venture.submit_s),
        [f"node{node}" for node in nodes],
        venture.resident.kind if venture.resident else "",
        venture.config,
    )
