"""The worker of a slot: what it makes of an assignment."""

import json

import pytest

from rota.execution.checkpoints import Checkpoints
from rota.execution.jobs.assignments import JobAssignment, JobShare, parse_job_answer, parse_job_assignment
from rota.execution.jobs.idle import IdleJob, IdleJobFactory
from rota.execution.jobs.ledger import JobLedger
from rota.execution.jobs.worker import KEPT, JobWorker
from rota.execution.journal import NotWritten


class Site(IdleJobFactory):
    """Counts how often jobs are opened; the job of kind `bad` cannot be."""

    def __init__(self):
        super().__init__({"good": {}, "bad": {}})
        self.opened = []

    def open(self, job, kind, rank, size, meeting):
        if kind == "bad":
            raise ValueError("no such data")
        self.opened.append(job)
        return super().open(job, kind, rank, size, meeting)


@pytest.fixture
def store(tmp_path):
    found = Checkpoints(tmp_path / "checkpoints")
    found.claim("run")
    return found


@pytest.fixture
def ledger():
    return JobLedger("run", ["good"] * 8 + ["bad"], [100] * 9)


@pytest.fixture
def factory():
    return Site()


@pytest.fixture
def worker(factory, store):
    return JobWorker(factory, store)


def share(ledger, job, iterations=10, **more):
    return JobShare(ledger.next_assignment(job, iterations), ledger.kinds[job], **more)


def done(store, which):
    return json.loads(store.read(which).content)["done"]


def test_an_assignment_and_its_answer_are_lines_of_json(worker, ledger):
    assignment = JobAssignment(
        (share(ledger, 0), share(ledger, 1, rank=1, size=2, meeting="/there", room=1, at_s=2.5))
    )
    assert parse_job_assignment(assignment.line()) == assignment
    line = worker.answer(assignment.line())
    assert line.endswith(b"\n")
    answer = parse_job_answer(json.loads(line)["parts"])
    assert [part.metric for part in answer.parts] == [10.0, 10.0]


def test_it_goes_on_from_memory_and_keeps_each_interval(worker, ledger, factory, store):
    for part in range(3):
        assignment = share(ledger, 0)
        worker.carry_out(JobAssignment((assignment,)))
        ledger.did(0, 10)
        assert done(store, assignment.order.make) == 10 * (part + 1)
    assert factory.opened == [0]


def test_an_assignment_that_is_given_again_is_answered_from_what_is_there(worker, ledger, factory, store):
    assignment = JobAssignment((share(ledger, 0),))
    worker.carry_out(assignment)
    (again,) = JobWorker(factory, store).carry_out(assignment).parts
    assert (again.again, again.metric, again.why) == (True, 10.0, "")
    assert factory.opened == [0]


def test_another_worker_goes_on_from_the_checkpoint(worker, ledger, factory, store):
    worker.carry_out(JobAssignment((share(ledger, 0),)))
    ledger.did(0, 10)
    (part,) = JobWorker(factory, store).carry_out(JobAssignment((share(ledger, 0, 5),))).parts
    assert part.metric == 15.0


def test_a_torn_checkpoint_is_made_again_from_the_one_before(worker, ledger, factory, store):
    for _ in range(2):
        worker.carry_out(JobAssignment((share(ledger, 0),)))
        ledger.did(0, 10)
    file = store.file(0, 2)
    file.write_bytes(file.read_bytes()[:-3])
    (part,) = JobWorker(factory, store).carry_out(JobAssignment((share(ledger, 0, 5),))).parts
    assert (part.metric, part.why) == (25.0, "")


class Telling(IdleJob):
    """Notes what it is told, and keeps all of it in its checkpoint."""

    def __init__(self):
        super().__init__({})
        self.shown, self.new = [], []

    def load(self, content):
        super().load(content)
        self.shown = json.loads(content)["told"]

    def save(self):
        return json.dumps({"done": self.done, "told": self.shown}).encode()

    def tell(self, room, at_s):
        self.shown.append([room, at_s])
        self.new.append({"told": [room, at_s]})

    def notes(self):
        notes, self.new = self.new, []
        return notes


class Tellings(IdleJobFactory):
    def open(self, job, kind, rank, size, meeting):
        return Telling()


def test_what_is_made_again_is_told_what_it_was_told_then_and_does_not_note_it_again(ledger, store):
    def carry_out(worker, room, at_s):
        assignment = share(ledger, 0, room=room, at_s=at_s, contexts=(ledger.jobs[0].context,))
        (part,) = worker.carry_out(parse_job_assignment(JobAssignment((assignment,)).line())).parts
        ledger.did(0, 10, (room, at_s))
        return part

    worker = JobWorker(Tellings({}), store)
    carry_out(worker, 0, 1.0)
    carry_out(worker, 3, 2.0)
    file = store.file(0, 2)
    file.write_bytes(file.read_bytes()[:-3])
    part = carry_out(JobWorker(Tellings({}), store), 1, 9.0)
    assert (part.metric, part.notes) == (30.0, ({"told": [1, 9.0]},))
    shown = json.loads(store.read(ledger.jobs[0].newest).content)["told"]
    assert shown == [[0, 1.0], [3, 2.0], [1, 9.0]]


def test_only_the_first_of_a_gang_writes(worker, ledger, store):
    assignment = share(ledger, 0, rank=1, size=2)
    (part,) = worker.carry_out(JobAssignment((assignment,))).parts
    assert part.metric == 10.0
    assert not store.file(0, 1).exists()


def test_a_job_that_cannot_be_opened_does_not_harm_the_other(worker, ledger):
    bad, good = worker.carry_out(JobAssignment((share(ledger, 8), share(ledger, 0)))).parts
    assert "ValueError: no such data" in bad.why
    assert (good.why, good.metric) == ("", 10.0)


def test_a_gang_that_is_elsewhere_now_is_opened_anew(worker, ledger, factory):
    for meeting in ("/a", "/a", "/b"):
        worker.carry_out(JobAssignment((share(ledger, 0, size=2, meeting=meeting),)))
        ledger.did(0, 10)
    assert factory.opened == [0, 0]


def test_only_a_few_jobs_stay_in_memory(worker, ledger, factory):
    for job in range(KEPT + 1):
        worker.carry_out(JobAssignment((share(ledger, job),)))
        ledger.did(job, 10)
    for job in (KEPT, 0):
        worker.carry_out(JobAssignment((share(ledger, job),)))
    assert factory.opened == [*range(KEPT + 1), 0]


def test_a_store_that_is_gone_is_not_the_fault_of_a_job(factory, ledger):
    class Gone:
        def read(self, which):
            raise NotWritten("the store does not answer")

    (part,) = JobWorker(factory, Gone()).carry_out(JobAssignment((share(ledger, 0),))).parts
    assert (part.no_room, part.why) == (True, "the store does not answer")


def test_no_room_is_not_the_fault_of_a_job(worker, ledger, store):
    assignment = share(ledger, 0)
    store.file(0, 1).mkdir()  # so that nothing can be put there
    (part,) = worker.carry_out(JobAssignment((assignment,))).parts
    assert part.no_room
    assert "cannot be written" in part.why
