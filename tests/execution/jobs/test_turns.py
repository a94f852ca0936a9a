"""Jobs that share a slot take turns by stage."""

import time
from threading import Lock

import pytest

from rota.execution.jobs.assignments import ShareSeconds
from rota.execution.jobs.worker import AHEAD, interleave


class Member:
    """Writes down what it does, and takes a moment for it."""

    def __init__(self, name, log, takes_s=0.0, fails_at=None, error=ValueError):
        self.name, self.log, self.takes_s, self.fails_at, self.done = name, log, takes_s, fails_at, 0
        self.error = error

    def _stage(self, stage):
        self.log.append((self.name, stage, "begins", self.done))
        time.sleep(self.takes_s)
        self.log.append((self.name, stage, "ends", self.done))

    def fetch(self):
        self._stage("fetch")

    def compute(self):
        if self.done == self.fails_at:
            raise self.error("enough")
        self._stage("compute")

    def exchange(self):
        self._stage("exchange")

    def update(self):
        self.done += 1


def test_one_fetches_while_another_computes():
    log = []
    interleave([(Member("a", log, 0.001), 100), (Member("b", log, 0.001), 100)])
    computing, overlaps = set(), 0
    for name, stage, what, _ in log:
        if stage == "compute":
            (computing.add if what == "begins" else computing.discard)(name)
        elif stage == "fetch" and what == "begins":
            overlaps += bool(computing - {name})
    assert overlaps > 10  # of 200


@pytest.mark.parametrize("stage", ["fetch", "compute"])
def test_only_one_at_a_time_is_in_a_stage(stage):
    lock, overlaps = Lock(), []

    class Alone(Member):
        def _stage(self, now):
            if now == stage:
                overlaps.append(not lock.acquire(blocking=False))
                super()._stage(now)
                lock.release()

    works = [(Alone(name, []), 200) for name in "abc"]
    interleave(works)
    assert overlaps == [False] * 600


def test_no_job_gets_more_than_one_iteration_ahead():
    log = []
    works = [(Member(name, log), 50) for name in "abc"]
    interleave(works)
    done = dict.fromkeys("abc", 0)
    for name, stage, what, number in log:
        if stage == "fetch" and what == "begins":
            done[name] = number
            assert max(done.values()) - min(done.values()) <= AHEAD + 1
    assert [member.done for member, _ in works] == [50, 50, 50]


def test_a_job_with_less_to_do_does_not_hold_up_the_others():
    works = [(Member("a", []), 3), (Member("b", []), 30)]
    interleave(works)
    assert [member.done for member, _ in works] == [3, 30]


def test_what_goes_wrong_with_one_is_its_own_affair():
    works = [(Member("a", [], fails_at=2), 10), (Member("b", []), 10)]
    failed, fine = interleave(works)
    assert "ValueError: enough" in failed
    assert isinstance(fine, ShareSeconds)
    assert works[1][0].done == 10


@pytest.mark.parametrize("number", [0, 1])
def test_a_job_that_wants_to_exit_has_failed(number):
    works = [(Member("a", []), 10), (Member("b", []), 10)]
    works[number] = (Member("c", [], fails_at=2, error=SystemExit), 10)
    outcomes = interleave(works)
    assert "SystemExit: enough" in outcomes[number]
    assert isinstance(outcomes[1 - number], ShareSeconds)


def test_nothing_is_done_for_no_jobs():
    assert interleave([]) == []


def test_where_the_time_went_adds_up():
    (seconds,) = interleave([(Member("a", []), 5)])
    assert min(seconds) >= 0.0
    assert seconds.training_s == pytest.approx(sum(seconds[:4]))
