"""The backend for jobs, with workers that say what the test wants; time passes only while they are asked."""

import pytest

from rota.core.cluster import Cluster, Node
from rota.execution.engine import Answered, Died, NodeCame, NodeWent
from rota.execution.jobs.assignments import JobAnswer, ShareResult, ShareSeconds
from rota.execution.jobs.status import read_jobs_status
from rota.execution.journal import read_journal
from rota.execution.journaled import RunClock

KINDS = {"job": {"compute_s": 0.01}, "resident": {"compute_s": 0.01}}
TURN_S = 0.02
LIMIT_S = 60.0
"""By then all is over, unless somebody waits for what never comes."""


class Scripted:
    """An engine and its workers: all assignments are done when asked, unless the script says otherwise."""

    def __init__(self, script=(), nodes=(0,)):
        self.script, self.there, self.assignments, self.sent, self.now_s = (
            list(script),
            list(nodes),
            [],
            [],
            0.0,
        )

    def cluster(self):
        return None

    def workers(self, cluster, setup):
        return self

    def nodes(self):
        return self.there

    def send(self, slot, assignment):
        self.assignments.append((slot, assignment))
        self.sent.append((slot, tuple(share.order.make.trial for share in assignment.shares)))

    def wait(self, timeout_s):
        self.now_s += TURN_S
        assert self.now_s < LIMIT_S, f"nothing ends; {self.assignments} are under way"
        return (self.script.pop(0) if self.script else type(self).all_done)(self)

    def all_done(self):
        return [self.answered() for _ in range(len(self.assignments))]

    def silent(self):
        return []

    def answered(self, why=""):
        slot, assignment = self.assignments.pop(0)
        makes = [share.order.make for share in assignment.shares]
        parts = [
            ShareResult(make.digest, ShareSeconds(compute_s=0.01 * make.steps), 1.0, why) for make in makes
        ]
        return Answered(slot, JobAnswer(tuple(parts)))

    def lose(self, node, *slots):
        """A node with these slots goes; whoever trained together with one of them says that it could not."""
        self.assignments = [(slot, assignment) for slot, assignment in self.assignments if slot not in slots]
        return [NodeWent(node), *(self.answered("the exchange broke") for _ in range(len(self.assignments)))]

    def close(self):
        pass


@pytest.fixture
def conduct(on_engine, monkeypatch):
    """Runs jobs on scripted workers and by their clock; the same folder each time."""

    def run(few, workers, **more):
        monkeypatch.setattr("rota.execution.jobs.backend.RunClock", lambda: RunClock(lambda: workers.now_s))
        return on_engine(few, workers, **more)

    return run


@pytest.fixture
def spread(few):
    """A resident at home in slot 0; slot 1 is on its node, slot 2 on another one."""

    class Spread(few):
        cluster = Cluster((Node(1, kind="cpu"), Node(1, kind="cpu")))

    return lambda *jobs, until_s=2.0: Spread(jobs, slots=3, kinds=KINDS, opportunistic=("resident", until_s))


def test_when_the_home_of_an_opportunistic_job_goes_what_it_was_lent_is_free_and_it_is_back_when_that_comes(
    conduct, spread
):
    went, came = [], []

    def leave(self):
        assert {slot for slot, jobs in self.sent if jobs == (1,)} == {0, 2}
        messages = self.lose(0, 0, 1)
        went.append(len(self.sent))
        return messages

    def come(self):
        came.append(len(self.sent))
        return [NodeCame(0), *self.all_done()]

    workers = Scripted([leave, *[Scripted.all_done] * 30, come], nodes=(0, 1))
    outcome = conduct(spread(("job", 1, 40, 0.0)), workers)
    assert outcome.complete
    assert (outcome.status.jobs[0].status, outcome.status.jobs[0].failures) == ("finished", 0)
    assert outcome.status.opportunistic.failures == 0
    assert set(workers.sent[went[0] : came[0]]) == {(2, (0,))}
    assert (0, (1,)) in workers.sent[came[0] :]


def test_an_opportunistic_job_waits_for_its_home_when_a_run_goes_on_without_it(conduct, spread):
    asked = spread(("job", 1, 40, 0.0))
    finished = []
    stopped = conduct(asked, Scripted(nodes=(0, 1)), asked_to_stop=lambda: True)
    assert not stopped.complete
    workers = Scripted(nodes=(1,))
    outcome = conduct(asked, workers, watch=lambda status: finished.append(status.jobs[0].status))
    assert outcome.complete
    assert finished[-1] == "finished"
    assert {slot for slot, _ in workers.sent} == {2}


def test_slots_of_a_node_that_was_gone_and_still_is_are_not_lent(conduct, spread):
    asked = spread(("job", 1, 400, 0.0), until_s=8.0)
    first = Scripted([lambda self: self.lose(1, 2)], nodes=(0, 1))
    lost = []
    stopped = conduct(asked, first, watch=lambda status: lost.append(0), asked_to_stop=lambda: len(lost) > 5)
    assert not stopped.complete
    workers = Scripted(nodes=(0,))
    assert conduct(asked, workers).complete
    assert {slot for slot, _ in workers.sent} == {0, 1}


def test_a_run_is_not_over_while_its_opportunistic_job_has_time_left(conduct, few, journal):
    asked = few((("job", 1, 20, 0.0),), kinds=KINDS, opportunistic=("resident", 4.0))
    seen = []
    stopped = conduct(
        asked,
        Scripted(),
        watch=lambda status: seen.append(status.jobs[0].status),
        asked_to_stop=lambda: "finished" in seen,
    )
    assert seen[-1] == "finished"
    assert not stopped.complete
    assert read_jobs_status(journal)[1] == "stopped"
    outcome = conduct(asked, Scripted())
    assert outcome.complete
    assert outcome.status.opportunistic.done > stopped.status.opportunistic.done


def test_a_job_that_ends_workers_is_found_out_and_the_others_of_its_group_are_not_abandoned(conduct, few):
    kinds = {
        "fetches": {"fetch_s": 0.01, "compute_s": 0.001},
        "computes": {"fetch_s": 0.001, "compute_s": 0.01},
    }
    jobs = (("fetches", 1, 40, 0.0), ("computes", 1, 40, 0.0))

    class Deadly(Scripted):
        def all_done(self):
            if any(
                share.order.make.trial == 0
                for _, assignment in self.assignments
                for share in assignment.shares
            ):
                self.assignments.clear()
                return [Died(0, "killed")]
            return super().all_done()

    workers = Deadly()
    deadly, fine = conduct(few(jobs, slots=1, kinds=kinds, scheduler="muri-s"), workers).status.jobs
    assert (deadly.status, deadly.failures, deadly.why) == ("failed", 3, "killed")
    assert (fine.status, fine.failures, fine.done) == ("finished", 0, 40)
    assert [jobs for _, jobs in workers.sent[:5]] == [(0, 1), (0,), (0,), (0,), (1,)]


def test_jobs_that_go_well_alone_are_together_again(conduct, few):
    kinds = {
        "fetches": {"fetch_s": 0.01, "compute_s": 0.001},
        "computes": {"fetch_s": 0.001, "compute_s": 0.01},
    }
    jobs = (("fetches", 1, 40, 0.0), ("computes", 1, 40, 0.0))

    def die(self):
        self.assignments.clear()
        return [Died(0, "killed")]

    workers = Scripted([die])
    outcome = conduct(few(jobs, slots=1, kinds=kinds, scheduler="muri-s"), workers)
    assert [(line.status, line.failures) for line in outcome.status.jobs] == [("finished", 0)] * 2
    assert [jobs for _, jobs in workers.sent[:4]] == [(0, 1), (0,), (1,), (0, 1)]


def test_a_policy_is_told_what_an_assignment_in_flight_should_have_done(conduct, few, journal):
    """100 iterations of 0.01 s in slices of 40: at 0.6 s, 40 have landed, 20 more are done: 40 are left."""
    silent = [Scripted.silent] * (round(0.4 / TURN_S) - 1)
    workers = Scripted([*silent, Scripted.all_done, *silent])
    asked = few((("job", 1, 100, 0.0), ("job", 1, 50, 0.59)), slots=1, slice_s=0.4, kinds=KINDS)
    assert conduct(asked, workers).complete
    assert [jobs for _, jobs in workers.sent] == [(0,), (0,), (0,), (1,), (1,)]
    bodies = [entry.body for entry in read_journal(journal) if entry.kind == "instant"]
    assert (bodies[1]["at_s"], bodies[1]["arrived"]) == (pytest.approx(0.6), [1, 1])
    assert bodies[1]["left"] == [[0, pytest.approx(40.0)]]


def test_the_last_iteration_of_an_assignment_counts_when_it_is_complete(conduct, few, journal):
    """It takes twice as long as it should, so 1 of 40 is left, not none."""
    workers = Scripted([Scripted.silent] * round(0.8 / TURN_S))
    asked = few((("job", 1, 40, 0.0), ("job", 1, 10, 0.75)), slots=1, slice_s=0.4, kinds=KINDS)
    assert conduct(asked, workers).complete
    bodies = [entry.body for entry in read_journal(journal) if entry.kind == "instant"]
    assert (bodies[1]["arrived"], bodies[1]["left"]) == ([1, 1], [[0, 1.0]])


def test_one_that_waits_for_its_slots_does_nothing_meanwhile(conduct, few, journal):
    """It is told to run at 0.1 s, but the slot is at a slice until 0.4 s."""
    workers = Scripted([Scripted.silent] * (round(0.4 / TURN_S) - 1))
    asked = few(
        (("job", 1, 100, 0.0), ("job", 1, 30, 0.1), ("job", 1, 200, 0.3)), slots=1, slice_s=0.4, kinds=KINDS
    )
    assert conduct(asked, workers).complete
    bodies = [entry.body for entry in read_journal(journal) if entry.kind == "instant"]
    assert bodies[2]["arrived"] == [2, 1]
    assert dict(bodies[2]["left"])[1] == 30.0


@pytest.mark.parametrize("gang", [2, 1])
def test_a_gang_that_was_paused_meets_anew_and_one_alone_goes_on_as_if_it_had_not_been(
    conduct, few, completions, gang
):
    """Its workers may have forgotten each other meanwhile, and not at the same time."""

    class Noting(Scripted):
        def __init__(self):
            super().__init__()
            self.meetings = []

        def send(self, slot, assignment):
            super().send(slot, assignment)
            share = assignment.shares[0]
            self.meetings.append((share.order.make.trial, share.meeting))

    workers = Noting()
    asked = few((("job", gang, 60, 0.0), ("job", gang, 10, 0.05)), slots=gang, slice_s=0.05, kinds=KINDS)
    assert conduct(asked, workers).complete
    completed = [(slice.parts[0].job, slice.fresh) for slice in completions()]
    back = 1 + max(number for number, (job, _) in enumerate(completed) if job == 1)
    assert [job for job, _ in completed[back:]] == [0] * (len(completed) - back)
    assert [fresh for _, fresh in completed[back:]] == [gang > 1] + [False] * (len(completed) - back - 1)
    of_first = [meeting for job, meeting in workers.meetings if job == 0]
    assert len(set(of_first)) == gang
    assert of_first == sorted(of_first, key=of_first.index)  # it never comes back to the one before
    assert ("" in of_first) == (gang == 1)


def test_an_assignment_says_what_was_told_when_what_it_goes_on_from_was_made_also_after_a_stop(
    conduct, few, completions
):
    class Noting(Scripted):
        def send(self, slot, assignment):
            super().send(slot, assignment)
            noted.extend((share.room, share.at_s, share.contexts) for share in assignment.shares if slot == 0)

    noted = []
    asked = few((("job", 1, 20, 0.3),), kinds=KINDS, opportunistic=("resident", 1.5))
    stopped = conduct(asked, Noting(), asked_to_stop=lambda: len(completions()) >= 6)
    assert not stopped.complete
    assert conduct(asked, Noting()).complete
    assert {room for room, _, _ in noted} == {0, 1}
    earlier = [(0, 0.0), *((room, at_s) for room, at_s, _ in noted[:-1])]
    assert [contexts for _, _, contexts in noted] == [(each,) for each in earlier]
