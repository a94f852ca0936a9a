"""One process owns a run of jobs: it drives the scheduler on workers, and keeps the journal."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from rota.core.costs import RESTART
from rota.core.errors import InputError
from rota.core.loop import Policy, drive
from rota.core.state import State
from rota.core.timeline import Timeline
from rota.execution.controller import BEGAN, ENDED, RESUMED, STOPPED
from rota.execution.folder import Books
from rota.execution.jobs.board import Board, BoardWitness, Frame
from rota.execution.jobs.ledger import JobLedger
from rota.execution.jobs.machines import JobMachines, note
from rota.execution.jobs.venture import Venture
from rota.execution.jobs.words import SLICE, JobWords, Landed, parse_landed
from rota.execution.journal import Journal
from rota.execution.journaled import Journaled
from rota.execution.workers import Workers

Watch = Callable[[Board], None]
"""Is told that something has happened."""


@dataclass(frozen=True, slots=True)
class JobsOutcome:
    """What came of it, or has come of it until it was stopped."""

    board: Board
    timeline: Timeline
    complete: bool
    replayed: int
    """Instants that came from the journal."""
    wall_s: float
    """How long this process took."""


def control_jobs(
    venture: Venture,
    scheduler: str,
    policy: Policy,
    workers: Callable[[], Workers],
    books: Books,
    *,
    asked_to_stop: Callable[[], bool] = lambda: False,
    watch: Watch = lambda board: None,
) -> JobsOutcome:
    """Run to the end, from the beginning or from wherever the journal ends. Workers end with it."""
    began, needs = time.perf_counter(), policy.needs
    books.make()
    with Journal(books.journal) as journal:
        frame = _frame(journal, venture, scheduler)
        state = State(
            venture.table, venture.cluster, RESTART, needs.sharing, needs.own, needs.own_slots
        )  # fmt: skip
        board = Board(frame)
        ledger = JobLedger(frame.run, venture.all_kinds, venture.all_iterations, venture.attempts)
        crew = workers()

        def landed(landed: Landed) -> None:
            board.landed(landed)
            watch(board)

        try:
            machines = JobMachines(
                venture, ledger, crew, books.checkpoints, journal, asked_to_stop=asked_to_stop, landed=landed
            )
            for entry in journal.read():
                if entry.kind == SLICE:
                    past = parse_landed(entry)
                    note(ledger, past)
                    board.landed(past)
                    machines.since_s = past.ended_s
            backend = Journaled(machines, journal, JobWords(), BoardWitness(board, state))
            for _ in drive(policy, backend, state):
                watch(board)
            complete = not machines.goes_on(state)
        finally:
            crew.close()
        journal.append(ENDED if complete else STOPPED, {}, machines.clock.now_s())
    return JobsOutcome(board, state.timeline(), complete, backend.replayed, time.perf_counter() - began)


def _frame(journal: Journal, venture: Venture, scheduler: str) -> Frame:
    """That of the journal; written there if it is new."""
    for entry in journal.read():
        if entry.body != _described(venture, scheduler, entry.body.get("run", "")).record():
            raise InputError(
                f"{journal.file}: of another run than the configuration says; choose another folder"
            )
        journal.append(RESUMED, {})
        return Frame(**entry.body)
    frame = _described(venture, scheduler, secrets.token_hex(8))
    journal.append(BEGAN, frame.record())
    return frame


def _described(venture: Venture, scheduler: str, run: str) -> Frame:
    nodes = venture.cluster.slot_nodes().tolist()
    return Frame(
        run,
        venture.seed,
        scheduler,
        list(venture.ids),
        list(venture.kinds),
        list(venture.iterations),
        list(venture.submit_s),
        [f"node{node}" for node in nodes],
        venture.resident.kind if venture.resident else "",
    )
