"""What every backend does alike, the simulator included."""

from dataclasses import dataclass

import pytest

from rota.core.population.events import (
    Assigned,
    Cloned,
    Continue,
    Idled,
    Joined,
    Reported,
    Retired,
    Stop,
    Stopped,
    TrialFinished,
)
from rota.core.population.view import Terms, TrialStatus
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.evolution.pbt import GrowthAtClone, Pbt
from rota.policies.population import PopulationPolicy


@dataclass(frozen=True)
class StopOdd:
    """Odd trials are let go when they first report."""

    def decide(self, view, trial):
        return Stop(trial) if trial % 2 else Continue(trial, reviewed=True)


@dataclass(frozen=True)
class RetireSecond:
    """The second slot is given up at once."""

    def retire(self, view):
        return [] if view.retired[1] else [1]


def kind(timeline, *wanted):
    return [event for event in timeline if isinstance(event, wanted)]


def test_every_trial_gets_its_steps_an_interval_at_a_time(conduct, small, follows):
    done = conduct(small(), PopulationPolicy(FifoAllocation()))
    reports = kind(done.timeline, Reported)
    assert sorted((report.trial, report.steps) for report in reports) == [
        (trial, 10) for trial in range(4) for _ in range(4)
    ]
    assert done.state.status.tolist() == [TrialStatus.FINISHED] * 4
    assert len(kind(done.timeline, TrialFinished)) == 4
    assert follows(done.timeline, small().hypers) == 16
    assert done.state.metric.tolist() == [10.0, 20.0 + 2**-20, 30.0 + 2 * 2**-20, 40.0 + 3 * 2**-20]


def test_nodes_come_first_and_time_never_runs_backwards(conduct, small):
    timeline = conduct(small(), PopulationPolicy(FifoAllocation())).timeline
    assert isinstance(timeline[0], Joined)
    assert timeline[0].at_s == 0.0
    times = [event.at_s for event in timeline]
    assert times == sorted(times)


def test_a_slot_trains_one_interval_at_a_time_and_completes_each_assignment(conduct, small, twice):
    timeline = conduct(small(trials=5), PopulationPolicy(twice)).timeline
    for slot in range(2):
        mine = [event for event in kind(timeline, Assigned, Reported, Idled) if event.slot == slot]
        assert mine, f"slot {slot} was never used"
        busy, free_s = False, 0.0
        for event in mine:
            assert isinstance(event, Assigned) != busy
            busy = not isinstance(event, Idled)
            if isinstance(event, Reported):
                assert free_s <= event.began_s <= event.began_s + event.moved_s <= event.ended_s <= event.at_s
                free_s = event.ended_s
        assert not busy


@pytest.mark.parametrize("report_each", [True, False], ids=["each", "batch"])
def test_clones_take_over_what_their_donor_had_reported_whatever_it_is_at(
    conduct, small, twice, follows, report_each
):
    wanted = small(trials=6, terms=Terms(10, 80), report_each=report_each)
    evolution = Pbt(quantile=0.5, grow=GrowthAtClone(probability=0.5, actions=("deepen 0",)))
    done = conduct(wanted, PopulationPolicy(twice, evolution))
    clones = kind(done.timeline, Cloned)
    assert any(clone.donor != clone.trial for clone in clones)
    assert any(clone.changes for clone in clones)
    assert follows(done.timeline, wanted.hypers) == 6 * 8
    assert done.state.steps.tolist() == [80] * 6


def test_lists_that_report_at_their_end_report_all_at_once(conduct, small, twice):
    timeline = conduct(small(report_each=False), PopulationPolicy(twice)).timeline
    emptied = {(event.slot, event.at_s) for event in kind(timeline, Idled)}
    assert {(event.slot, event.at_s) for event in kind(timeline, Reported)} == emptied
    assert len(emptied) < len(kind(timeline, Reported))


@pytest.mark.parametrize("report_each", [True, False], ids=["each", "batch"])
def test_a_trial_that_is_good_enough_is_not_trained_any_further(conduct, small, twice, report_each):
    # Trial 3 gains 10 an interval, trial 0 only 2.5: they are there after one interval, and after four.
    done = conduct(small(terms=Terms(10, 40, target=9.5), report_each=report_each), PopulationPolicy(twice))
    assert done.state.steps.tolist() == [40, 20, 20, 10]
    assert [len(history) for history in done.state.history] == [4, 2, 2, 1]
    assert done.state.status.tolist() == [TrialStatus.FINISHED] * 4


def test_a_trial_that_is_stopped_is_dropped_from_its_list(conduct, small, twice):
    done = conduct(small(), PopulationPolicy(twice, StopOdd()))
    assert done.state.steps.tolist() == [40, 10, 40, 10]
    assert sorted(event.trial for event in kind(done.timeline, Stopped)) == [1, 3]


def test_a_slot_that_was_given_up_gets_nothing(conduct, small):
    done = conduct(small(), PopulationPolicy(FifoAllocation(), retirement=RetireSecond()))
    assert {event.slot for event in kind(done.timeline, Reported)} == {0}
    assert [event.slot for event in kind(done.timeline, Retired)] == [1]


def test_on_one_slot_all_backends_come_to_the_same(conduct, simulate, small, twice):
    wanted = small(trials=6, slots=1, terms=Terms(10, 80), seed=3)
    policy = PopulationPolicy(twice, Pbt(quantile=0.5))
    done, expected = conduct(wanted, policy), simulate(wanted, policy)
    what = [
        (type(event), getattr(event, "trial", None), getattr(event, "metric", None))
        for event in done.timeline
    ]
    assert what == [
        (type(event), getattr(event, "trial", None), getattr(event, "metric", None))
        for event in expected.timeline
    ]
    assert [dict(hyper) for hyper in done.state.hyper] == [dict(hyper) for hyper in expected.state.hyper]
