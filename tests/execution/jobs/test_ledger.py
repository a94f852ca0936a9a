"""How far jobs are, and which checkpoints they need."""

import pytest

from rota.execution.jobs.ledger import JobLedger


@pytest.fixture
def ledger():
    return JobLedger("run", ["a", "b"], [30, 10], attempts=2)


def test_a_job_is_over_when_nothing_is_left(ledger):
    ledger.did(0, 10)
    assert (ledger.jobs[0].left, ledger.jobs[0].over) == (20, False)
    ledger.did(0, 20)
    assert (ledger.jobs[0].left, ledger.jobs[0].over) == (0, True)


def test_an_assignment_leads_from_the_newest_checkpoint_to_the_next(ledger):
    first = ledger.next_assignment(0, 10)
    assert (first.source, first.earlier, first.make.version, first.make.steps) == (None, (), 1, 10)
    ledger.did(0, 10)
    second = ledger.next_assignment(0, 5)
    assert (second.source, second.earlier, second.make.version) == (first.make, (None,), 2)
    ledger.did(0, 5)
    third = ledger.next_assignment(0, 5)
    assert (third.source, third.earlier) == (second.make, (first.make,))


def test_what_is_made_depends_on_all_that_it_follows_from(ledger):
    other = JobLedger("other run", ["a", "b"], [30, 10])
    digests = {
        ledger.next_assignment(0, 10).make.digest,
        ledger.next_assignment(0, 9).make.digest,
        other.next_assignment(0, 10).make.digest,
    }
    ledger.did(0, 10)
    digests.add(ledger.next_assignment(0, 10).make.digest)
    assert len(digests) == 4


def test_the_newest_two_checkpoints_are_kept(ledger):
    for _ in range(3):
        ledger.did(0, 5)
    assert ledger.unused == [(0, 1)]
    assert ledger.needed() == {(0, 2), (0, 3)}
    assert [ledger.is_past((0, version)) for version in (1, 2, 3, 4, 9)] == [True, False, False, False, False]
    assert not ledger.is_past((7, 1))  # of a job that there is not: not ours to judge


def test_a_job_that_failed_too_often_is_given_up(ledger):
    ledger.failed(1)
    assert not ledger.jobs[1].over
    ledger.failed(1)
    assert (ledger.jobs[1].over, ledger.jobs[1].left) == (True, 10)
