"""The backend of real runs, with workers that say what the test wants, in whatever order it wants it."""

from contextlib import ExitStack

import pytest

from rota.core.errors import Stuck
from rota.core.loop import drive
from rota.core.population.events import Joined, NodeFailed, Reported, TrialFailed
from rota.core.population.view import Terms
from rota.execution.assignments import Done, FailedAnswer, IntervalSeconds
from rota.execution.backend import PopulationBackend
from rota.execution.checkpoints import CheckpointPruner, Checkpoints
from rota.execution.engine import Answered, Died, NodeCame, NodeWent
from rota.execution.journal import Journal
from rota.execution.journaled import RunClock
from rota.execution.ledger import Ledger
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.population import PopulationPolicy


class Scripted:
    """Answers all orders when it is asked, unless the script says something else at that time."""

    def __init__(self, script=(), nodes=(0,)):
        self.script, self.assignments, self._nodes = list(script), [], list(nodes)
        self.sent = 0

    def nodes(self):
        return self._nodes

    def send(self, slot, assignment):
        self.assignments.append((slot, assignment))
        self.sent += 1

    def wait(self, timeout_s):
        turn = self.script.pop(0) if self.script else None
        if turn is None:
            return [self.done() for _ in range(len(self.assignments))]
        return turn(self)

    def done(self, seconds=1.0):
        slot, assignment = self.assignments.pop(0)
        return Answered(slot, Done(assignment.make.digest, 0.5, IntervalSeconds(0.0, seconds)))

    def undone(self):
        slot, assignment = self.assignments.pop(0)
        return Answered(slot, FailedAnswer(assignment.make.digest, "raised"))

    def died(self, slot=0):
        self.assignments = [(other, assignment) for other, assignment in self.assignments if other != slot]
        return Died(slot, "killed")

    def close(self):
        pass


@pytest.fixture
def drive_on(tmp_path, small):
    """Drives a small population on scripted workers; time stands still but for what they say."""

    def run(workers, policy=None, asked_to_stop=lambda: False, **what):
        spec = small(**what).spec()
        checkpoints = Checkpoints(tmp_path / "checkpoints")
        state = spec.state()
        ledger = Ledger("run", spec.cluster, spec.hypers, spec.terms.target)
        clock, stack = RunClock(tick=lambda: 0.0), ExitStack()
        journal = stack.enter_context(Journal(tmp_path / "journal.sqlite"))
        machines = PopulationBackend(
            ledger,
            workers,
            checkpoints,
            stack.enter_context(CheckpointPruner(checkpoints, journal)),
            dict,
            report_each=spec.report_each,
            asked_to_stop=asked_to_stop,
            clock=clock,
        )
        with stack:
            for _ in drive(policy or PopulationPolicy(FifoAllocation()), machines, state):
                pass
        return state

    return run


def of(state, *kinds):
    return [event for event in state.timeline if isinstance(event, kinds)]


def test_answers_of_one_instant_are_all_taken_in_even_if_the_first_of_them_is_a_failure(drive_on, twice):
    workers = Scripted([lambda self: [self.undone(), self.done()]])
    state = drive_on(workers, PopulationPolicy(twice), trials=2, slots=1, terms=Terms(10, 10))
    assert len(of(state, TrialFailed)) == 1
    assert state.steps.tolist() == [10, 10]


def test_after_a_death_only_the_trial_that_was_being_trained_is_blamed_and_the_rest_is_sent_again(
    drive_on, twice
):
    workers = Scripted([lambda self: [self.died()]])
    state = drive_on(workers, PopulationPolicy(twice), trials=2, slots=1, terms=Terms(10, 10))
    assert [event.trial for event in of(state, TrialFailed)] == [0]
    assert state.steps.tolist() == [10, 10]
    assert workers.sent == 4  # two were lost, and both were sent again


@pytest.mark.parametrize("fault", ["undone", "died"])
def test_a_list_that_reports_at_its_end_does_so_if_the_last_of_it_has_failed(drive_on, twice, fault):
    workers = Scripted([lambda self: [self.done(), getattr(self, fault)()]])
    terms = Terms(10, 10)
    state = drive_on(workers, PopulationPolicy(twice), trials=2, slots=1, terms=terms, report_each=False)
    assert [event.trial for event in of(state, TrialFailed)] == [1]
    assert state.steps.tolist() == [10, 10]


def test_a_worker_that_answers_and_dies_is_replaced_before_it_is_given_anything(drive_on, twice):
    workers = Scripted([lambda self: [self.done(), self.died()]])
    state = drive_on(workers, PopulationPolicy(twice), trials=3, slots=1, terms=Terms(10, 20))
    assert [event.trial for event in of(state, TrialFailed)] == [1]
    assert state.steps.tolist() == [20, 20, 20]


def test_an_answer_that_is_not_awaited_is_ignored(drive_on):
    stale = Answered(0, Done("of an order of long ago", 0.9))
    state = drive_on(Scripted([lambda self: [stale], lambda self: [stale, self.done()]]), trials=1, slots=1)
    assert [event.metric for event in of(state, Reported)] == [0.5] * 4


def test_what_was_sent_to_a_node_that_went_is_done_when_it_has_come_back(drive_on):
    def leave(self):
        late = self.done()
        self.assignments.clear()
        return [NodeWent(0), late]

    state = drive_on(Scripted([None, leave, lambda self: [NodeCame(0)]]), trials=2)
    assert [type(event) for event in of(state, Joined, NodeFailed)] == [Joined, NodeFailed, Joined]
    assert state.steps.tolist() == [40, 40]


def test_time_goes_on_by_what_workers_say_they_took(drive_on):
    """They were trained while no controller ran, so its clock does not know of it."""
    state = drive_on(Scripted(), trials=1, slots=1)
    reports = of(state, Reported)
    assert [event.at_s for event in reports] == [1.0, 2.0, 3.0, 4.0]
    assert [event.began_s for event in reports] == [0.0, 1.0, 2.0, 3.0]
    assert [event.moved_s for event in reports] == [0.0] * 4


class Nothing:
    """Hands nothing out."""

    def hand_out(self, view):
        return iter(())


def test_a_policy_that_leaves_everything_idle_is_told_so(drive_on):
    with pytest.raises(Stuck, match="4 trials are not done and 2 slots are idle"):
        drive_on(Scripted(), PopulationPolicy(Nothing()))


def test_a_run_that_is_asked_to_stop_waits_for_the_present_interval_only(drive_on, twice):
    workers = Scripted([lambda self: [self.done()]])
    state = drive_on(workers, PopulationPolicy(twice), asked_to_stop=lambda: workers.sent > 0, slots=1)
    assert state.steps.tolist() == [10, 0, 0, 0]
    assert workers.sent == 2  # the part after it was there already, and is not waited for


def test_a_node_that_went_is_not_waited_for(drive_on):
    workers = Scripted([lambda self: [NodeWent(0)]])
    state = drive_on(workers, asked_to_stop=lambda: workers.sent > 0)
    assert state.steps.tolist() == [0, 0, 0, 0]
    assert state.waiting == [2, 3, 0, 1]
