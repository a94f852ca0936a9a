"""The state of a population refuses what cannot be, and keeps queue, slots and trials in order."""

from math import inf, isnan, nan

import numpy as np
import pytest

from rota.core.cluster import Cluster
from rota.core.errors import ConfigError, IllegalPlan
from rota.core.population import memory
from rota.core.population.costs import AssignmentCosts
from rota.core.population.engine import PopulationEngine
from rota.core.population.events import (
    Assign,
    Assigned,
    Clone,
    Continue,
    Idled,
    Interval,
    Joined,
    NodeFailed,
    Reported,
    Retire,
    Retired,
    Stop,
    Stopped,
    TrialFailed,
    TrialFinished,
)
from rota.core.population.view import Terms, TrialStatus


class Trials:
    """Trials whose hyper-parameters say how many seconds a step takes; a checkpoint has 10 MB."""

    def kind(self, hyper, changes):
        return " ".join([str(hyper.get("step_s", 1.0)), *changes])

    def step_s(self, kind):
        return float(kind.split()[0])

    def size_mb(self, kind):
        return 10.0


def state_of(trials=4, slots=2, terms=None, costs=None, hypers=None):
    """With all slots idle at 0 s, of speed 1, each on its own node."""
    terms = terms or Terms(interval=10, steps=30)
    state = PopulationEngine(
        hypers or [{}] * trials,
        Cluster.of_speeds([1.0] * slots),
        terms,
        costs or AssignmentCosts(),
        Trials(),
    )
    state.apply([Joined(0.0, node) for node in range(slots)])
    return state


def carry_out(state, *plan):
    state.request(plan)


def report(state, at_s, slot, trial, steps=10, metric=nan, *, last=True):
    """A part has been trained, from the moment of the last event, and its list is done."""
    events = [Reported(at_s, slot, trial, steps, state.now_s, at_s, 0.0, metric)]
    state.apply([*events, Idled(at_s, slot)] if last else events)


def texts(*events):
    """As text: two events are equal tuples if they have the same numbers, whatever happened."""
    return [str(event) for event in events]


# illegal plans


@pytest.mark.parametrize(
    ("decision", "complaint"),
    [
        (Assign(2, [Interval(0, 10)]), "slot 2 is not idle; it cannot get an assignment"),
        (Assign(-1, [Interval(0, 10)]), "slot -1 is not idle; it cannot get an assignment"),
        (Assign(0, []), "slot 0 gets an empty assignment; leave it idle instead"),
        (Assign(0, [Interval(4, 10)]), "trial 4 is not waiting; it cannot be assigned to slot 0"),
        (Assign(0, [Interval(-1, 10)]), "trial -1 is not waiting; it cannot be assigned to slot 0"),
        (Assign(0, [Interval(0, 0)]), "trial 0 is assigned 0 steps; it has 30 left"),
        (Assign(0, [Interval(0, 31)]), "trial 0 is assigned 31 steps; it has 30 left"),
        (Assign(0, [Interval(0, 20), Interval(0, 11)]), "trial 0 is assigned 11 steps; it has 10 left"),
        (Continue(0), "trial 0 has not reported; it cannot be reviewed"),
        (Stop(0), "trial 0 has not reported; it cannot be reviewed"),
        (Clone(0, 1, {}), "trial 0 cannot clone trial 1, which has no checkpoint"),
        (Clone(0, 4, {}), "trial 0 cannot clone trial 4, which has no checkpoint"),
        (Clone(0, -1, {}), "trial 0 cannot clone trial -1, which has no checkpoint"),
        (Retire(2), "slot 2 is already retired, or does not exist"),
        (Retire(-1), "slot -1 is already retired, or does not exist"),
    ],
)
def test_a_plan_that_cannot_be_is_illegal_and_the_error_says_why(decision, complaint):
    with pytest.raises(IllegalPlan, match=f"^{complaint}$"):
        state_of().request([decision])


@pytest.mark.parametrize(
    ("then", "complaint"),
    [
        (Assign(0, [Interval(1, 10)]), "slot 0 is not idle"),
        (Assign(1, [Interval(0, 10)]), "trial 0 is not waiting"),
        (Continue(0), "trial 0 has not reported"),
    ],
)
def test_a_slot_and_a_trial_are_assigned_once(then, complaint):
    with pytest.raises(IllegalPlan, match=complaint):
        state_of().request([Assign(0, [Interval(0, 10)]), then])


def test_a_slot_is_given_up_once():
    state = state_of()
    carry_out(state, Retire(0))
    with pytest.raises(IllegalPlan, match="slot 0 is already retired"):
        state.request([Retire(0)])
    with pytest.raises(IllegalPlan, match="slot 0 is not idle"):
        state.request([Assign(0, [Interval(0, 10)])])


def test_about_every_trial_that_reported_something_is_decided():
    state = state_of()
    carry_out(state, Assign(0, [Interval(0, 10), Interval(1, 10)]))
    report(state, 10.0, 0, 0, last=False)
    with pytest.raises(IllegalPlan, match="trial 0 reported and was not reviewed"):
        state.request([])


def test_about_a_trial_one_thing_is_decided():
    state = state_of()
    carry_out(state, Assign(0, [Interval(0, 10)]))
    report(state, 10.0, 0, 0)
    with pytest.raises(IllegalPlan, match="trial 0 has not reported"):
        state.request([Stop(0), Continue(0)])


def test_a_trial_is_not_assigned_before_something_is_decided():
    state = state_of()
    carry_out(state, Assign(0, [Interval(0, 10)]))
    report(state, 10.0, 0, 0)
    with pytest.raises(IllegalPlan, match="trial 0 is not waiting"):
        state.request([Assign(0, [Interval(0, 10)])])


def test_a_trial_that_is_done_is_neither_assigned_nor_reviewed():
    state = state_of()
    carry_out(state, Assign(0, [Interval(0, 30)]))
    report(state, 30.0, 0, 0, steps=30)
    for decision in (Assign(0, [Interval(0, 1)]), Continue(0), Stop(0)):
        with pytest.raises(IllegalPlan):
            state.request([decision])


def test_a_slot_of_a_node_that_is_gone_is_not_idle_until_it_is_back():
    state = state_of()
    state.apply([NodeFailed(3.0, 0)])
    with pytest.raises(IllegalPlan, match="slot 0 is not idle"):
        state.request([Assign(0, [Interval(0, 10)])])
    state.apply([Joined(4.0, 0)])
    carry_out(state, Assign(0, [Interval(0, 10)]))
    assert texts(state.timeline[-1]) == texts(Assigned(4.0, 0, 1, 10))


# what is taken in


def test_a_plan_is_taken_in_decision_by_decision_so_that_it_can_look_at_what_it_did():
    state = state_of()
    seen = []

    def plan():
        yield Assign(0, [Interval(2, 10), Interval(0, 5), Interval(2, 10)])
        seen.append((list(state.idle), list(state.waiting), state.assigned.tolist()))

    state.request(plan())
    assert seen == [([1], [1, 3], [5, 0, 20, 0])]
    assert [state.remaining(trial) for trial in range(4)] == [25, 30, 10, 30]


def test_an_assignment_is_on_the_timeline_with_its_trials_and_steps():
    state = state_of()
    state.request([Assign(0, [Interval(0, 10), Interval(1, 5), Interval(0, 5)])])
    assert texts(state.timeline[-1]) == texts(Assigned(0.0, 0, 2, 20))


def test_a_report_says_how_far_and_how_good_a_trial_is_and_where():
    state = state_of()
    carry_out(state, Assign(1, [Interval(2, 10)]))
    report(state, 8.0, 1, 2, metric=0.5)
    assert (state.status[2], state.steps[2], state.assigned[2], state.metric[2]) == (
        TrialStatus.REPORTED,
        10,
        0,
        0.5,
    )
    assert (state.checkpoint_node[2], state.leader, state.best, state.to_review) == (1, 10, 0.5, [2])
    assert (state.history[2], state.step_times.step_s[1, 0]) == ([(10, 0.5)], 0.8)
    assert (state.trial_s.tolist(), state.measured, state.freed) == ([inf, 8.0], [1], 1)
    assert state.idle == [0, 1]


def test_the_best_metric_is_the_best_there_has_been_and_no_measurement_does_not_count():
    state = state_of()
    assert isnan(state.best)
    for at_s, metric, best in ((1.0, nan, nan), (2.0, 0.6, 0.6), (3.0, 0.4, 0.6)):
        carry_out(state, Assign(0, [Interval(0, 1)]))
        report(state, at_s, 0, 0, steps=1, metric=metric)
        carry_out(state, Continue(0))
        assert state.best == pytest.approx(best, nan_ok=True)


def test_the_leader_is_whoever_is_furthest_not_who_reported_last():
    state = state_of()
    leaders = []
    for at_s, trial, steps in ((1.0, 0, 20), (2.0, 1, 5), (3.0, 1, 18)):
        carry_out(state, Assign(0, [Interval(trial, steps)]))
        report(state, at_s, 0, trial, steps)
        carry_out(state, Continue(trial))
        leaders.append(state.leader)
    assert leaders == [20, 20, 23]


@pytest.mark.parametrize(("steps", "metric"), [(30, nan), (10, 0.8), (10, 0.9)])
def test_a_trial_is_done_after_its_steps_or_when_it_is_as_good_as_asked(steps, metric):
    state = state_of(terms=Terms(10, 30, target=0.8))
    carry_out(state, Assign(0, [Interval(0, 30)]))
    report(state, 30.0, 0, 0, steps=steps, metric=metric)
    assert texts(*state.timeline[-2:]) == texts(TrialFinished(30.0, 0), Idled(30.0, 0))
    assert (state.status[0], state.assigned[0], state.to_review, state.left) == (
        TrialStatus.FINISHED,
        0,
        [],
        3,
    )


def test_a_trial_that_is_stopped_is_done():
    state = state_of()
    carry_out(state, Assign(0, [Interval(0, 10), Interval(0, 10)]))
    report(state, 10.0, 0, 0, last=False)
    carry_out(state, Stop(0))
    assert texts(state.timeline[-1]) == texts(Stopped(10.0, 0))
    assert (state.status[0], state.assigned[0], state.left, state.waiting) == (
        TrialStatus.STOPPED,
        0,
        3,
        [1, 2, 3],
    )


def test_trials_whose_list_goes_on_do_not_wait_meanwhile():
    state = state_of()
    carry_out(state, Assign(0, [Interval(0, 10), Interval(0, 10)]))
    report(state, 10.0, 0, 0, last=False)
    carry_out(state, Continue(0))
    assert (state.status[0], state.assigned[0], state.waiting) == (TrialStatus.ASSIGNED, 10, [1, 2, 3])


# the queue


def reports_in_turn(state):
    """Trials 3, 1, 0 report 10, 20 and 10 steps; trial 2 has waited from the beginning."""
    for at_s, trial, steps in ((1.0, 3, 10), (2.0, 1, 20), (3.0, 0, 10)):
        carry_out(state, Assign(0, [Interval(trial, steps)]))
        report(state, at_s, 0, trial, steps)
        carry_out(state, Continue(trial))
    return state.waiting


def test_the_least_advanced_is_first_and_behind_those_that_are_as_far():
    assert reports_in_turn(state_of()) == [2, 3, 0, 1]


def test_or_whoever_has_reported_first():
    assert reports_in_turn(state_of(terms=Terms(10, 30, least_advanced_first=False))) == [2, 3, 1, 0]


def test_a_part_is_an_interval_or_what_is_left():
    state = state_of(terms=Terms(interval=10, steps=14))
    carry_out(state, Assign(0, [Interval(0, 10)]))
    report(state, 10.0, 0, 0)
    carry_out(state, Continue(0))
    assert state.first(2) == [Interval(1, 10), Interval(2, 10)]
    assert state.first(9) == [Interval(1, 10), Interval(2, 10), Interval(3, 10), Interval(0, 4)]


def test_a_part_may_be_longer_or_shorter_than_an_interval():
    state = state_of()
    carry_out(state, Assign(0, [Interval(0, 3)]), Assign(1, [Interval(1, 30)]))
    assert state.assigned.tolist() == [3, 30, 0, 0]


# clones


def clone_of_1(state, **hyper):
    """Trials 0 and 1 report at 10 s from slots 0 and 1; then trial 0 goes on as trial 1."""
    carry_out(state, Assign(0, [Interval(0, 10)]), Assign(1, [Interval(1, 10)]))
    reports = [Reported(10.0, n, n, 10, 0.0, 10.0, 0.0, n / 2) for n in (0, 1)]
    state.apply([*reports, Idled(10.0, 0), Idled(10.0, 1)])
    carry_out(state, Continue(1), Clone(0, 1, hyper, ("deepen 0",)))
    return state


def test_a_clone_has_the_checkpoint_and_network_of_its_donor_and_its_own_steps():
    hyper = {"step_s": 2.0}
    state = clone_of_1(state_of(), **hyper)
    assert (state.checkpoint_node[0], state.steps[0], state.metric[0], state.fresh[0]) == (1, 10, 0.0, 0)
    assert (state.hyper[0], state.changes[0]) == (hyper, ("deepen 0",))
    assert (state.hyper[1], state.changes[1], state.fresh[1]) == ({}, (), 10)
    assert state.waiting == [2, 3, 1, 0]


def test_a_clone_of_a_network_that_was_just_changed_does_not_change_again_before_it_reports():
    state = state_of()
    for trial in (0, 1):
        carry_out(state, Assign(trial, [Interval(trial, 10)]))
    state.apply([Reported(10.0, n, n, 10, 0.0, 10.0, 0.0, 0.5) for n in (0, 1)])
    grown = state.arrays["trials"][memory.GREW]
    grown[1] = 1  # its donor's change is not trained yet
    carry_out(state, Continue(1), Clone(0, 1, {}, ("deepen 0",)))
    assert grown[[0, 1]].tolist() == [1, 1]


def test_what_a_clone_costs_is_expected_from_what_its_slots_were_off_by():
    state = clone_of_1(state_of(hypers=[{}, {"step_s": 4.0}, {}, {}]), step_s=2.0)
    # Slot 0 took 1 s per step, as expected; slot 1 took 1 s where 4 s were expected.
    assert state.kinds == ["1.0", "4.0", "2.0 deepen 0"]
    assert state.step_times.step_s[:, state.kind[0]].tolist() == [2.0, 0.5]


def test_moving_a_clone_is_moving_what_its_donor_had():
    state = clone_of_1(state_of(costs=AssignmentCosts(latency_s=1.0, bandwidth_mb_s=5.0)))
    assert [state.move_s(0, slot) for slot in (0, 1)] == [3.0, 0.0]
    assert [state.move_s(2, slot) for slot in (0, 1)] == [0.0, 0.0]  # it has no checkpoint yet


def test_a_clone_does_not_share_its_hyper_parameters_with_the_decision():
    hyper = {"lr": 0.1}
    state = state_of()
    carry_out(state, Assign(0, [Interval(0, 10)]))
    report(state, 10.0, 0, 0)
    carry_out(state, Clone(0, 0, hyper))
    hyper["lr"] = 0.2
    assert state.hyper[0] == {"lr": 0.1}


def test_fresh_steps_are_counted_from_when_evolution_last_looked():
    state = state_of()
    fresh = []
    for at_s, looked in ((1.0, False), (2.0, True), (3.0, False)):
        carry_out(state, Assign(0, [Interval(0, 5)]))
        report(state, at_s, 0, 0, steps=5)
        fresh.append(int(state.fresh[0]))
        carry_out(state, Continue(0, reviewed=looked))
    assert fresh == [5, 10, 5]


# slots and nodes


def test_idle_slots_stand_in_the_order_in_which_they_became_so():
    state = state_of(slots=3)
    carry_out(state, Assign(0, [Interval(0, 10)]), Assign(1, [Interval(1, 10)]))
    report(state, 5.0, 1, 1)
    carry_out(state, Continue(1))
    report(state, 6.0, 0, 0)
    assert state.idle == [2, 1, 0]


def test_a_list_that_is_lost_was_done_by_then_and_its_slot_is_free_when_it_is_back():
    state = state_of()
    carry_out(state, Assign(0, [Interval(0, 10), Interval(1, 10)]))
    assert state.ends_s[0] == 20.0
    state.apply([NodeFailed(5.0, 0)])
    assert (state.ends_s[0], state.idle, state.waiting) == (5.0, [1], [2, 3, 0, 1])
    assert (state.assigned.tolist(), state.usable.tolist()) == ([0] * 4, [False, True])
    state.apply([Joined(9.0, 0)])
    assert (state.idle, state.ends_s[0], state.freed) == ([1, 0], 5.0, 1)


def test_a_node_that_is_lost_or_joins_twice_is_lost_or_joins_once():
    state = state_of()
    state.apply([NodeFailed(1.0, 0), NodeFailed(1.0, 0)])
    state.apply([Joined(2.0, 0), Joined(2.0, 0)])
    assert state.idle == [1, 0]


def test_a_busy_slot_that_is_given_up_is_so_on_the_timeline_when_it_is_free():
    state = state_of()
    carry_out(state, Assign(0, [Interval(0, 10)]), Retire(0))
    assert state.usable.tolist() == [False, True]
    assert texts(state.timeline[-1]) == texts(Assigned(0.0, 0, 1, 10))
    report(state, 10.0, 0, 0)
    assert (texts(state.timeline[-1]), state.idle) == (texts(Retired(10.0, 0)), [1])


def test_a_slot_that_is_done_with_its_last_list_counts_among_those_that_are_done():
    state = state_of()
    carry_out(state, Assign(0, [Interval(0, 10)]), Retire(0))
    report(state, 10.0, 0, 0)
    assert (state.idle, state.freed) == ([1], 1)


def test_a_slot_that_was_given_up_is_needed_if_it_comes_back_when_nobody_is_left():
    state = state_of()
    carry_out(state, Retire(1))
    state.apply([NodeFailed(1.0, 1)])
    state.apply([NodeFailed(2.0, 0)])
    assert (state.idle, state.usable.tolist()) == ([], [False, False])
    state.apply([Joined(3.0, 1)])
    assert (state.idle, state.usable.tolist(), state.freed) == ([1], [False, True], 1)


def test_seconds_per_trial_are_of_training_and_over_different_trials():
    state = state_of()
    carry_out(state, Assign(0, [Interval(0, 10), Interval(1, 10), Interval(0, 10)]))
    spans = [(0, 0.0, 12.0, 4.0), (1, 12.0, 20.0, 2.0), (0, 20.0, 26.0, 0.0)]  # with what had to be moved
    reports = [Reported(26.0, 0, trial, 10, began, end, moved, nan) for trial, began, end, moved in spans]
    state.apply([*reports, Idled(26.0, 0)])
    # 8 + 6 + 6 s of training for two trials.
    assert (state.trial_s[0], state.first_s[0]) == (10.0, 20.0)
    assert state.to_review == [0, 1]


# terms


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"interval": 0}, "interval is 0; it must be at least 1"),
        ({"steps": 0}, "steps is 0; it must be at least 1"),
        ({"target": nan}, "target is not a number"),
    ],
)
def test_terms_that_cannot_be_are_refused(wrong, complaint):
    with pytest.raises(ConfigError, match=complaint):
        Terms(**wrong)


def test_a_population_has_at_least_one_trial():
    with pytest.raises(ConfigError, match="population: no trials; give at least one"):
        PopulationEngine([], Cluster.of_speeds([1.0]), Terms(), AssignmentCosts(), Trials())


def test_what_evolution_draws_from_depends_on_the_seed_alone():
    draws = [
        PopulationEngine(
            [{}], Cluster.of_speeds([1.0]), Terms(), AssignmentCosts(), Trials(), seed
        ).random.random(3)
        for seed in (5, 5, 6)
    ]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


# failures


def test_a_trial_whose_part_failed_waits_again_with_what_it_had_reported():
    state = state_of(trials=2, slots=1)
    carry_out(state, Assign(0, [Interval(0, 10), Interval(1, 10), Interval(0, 10)]))
    report(state, 5.0, 0, 0, last=False)
    carry_out(state, Continue(0))
    state.apply([TrialFailed(8.0, 0, 1, "why"), Reported(8.0, 0, 0, 10, 5.0, 8.0, 0.0, nan), Idled(8.0, 0)])
    carry_out(state, Continue(0))
    assert (state.steps.tolist(), state.assigned.tolist()) == ([20, 0], [0, 0])
    assert state.waiting == [1, 0]
    assert state.failures.tolist() == [0, 1]
    assert state.idle == [0]


def test_a_trial_that_failed_too_often_is_let_go():
    state = state_of(trials=2, slots=1, terms=Terms(interval=10, steps=30, attempts=2))
    for at_s in (1.0, 2.0):
        carry_out(state, Assign(0, [Interval(0, 10)]))
        state.apply([TrialFailed(at_s, 0, 0, "why"), Idled(at_s, 0)])
    assert state.status.tolist() == [TrialStatus.STOPPED, TrialStatus.WAITING]
    assert (state.left, state.waiting) == (1, [1])
    assert texts(*state.timeline[-3:]) == texts(TrialFailed(2.0, 0, 0, "why"), Stopped(2.0, 0), Idled(2.0, 0))


def test_a_list_that_failed_as_a_whole_says_nothing_about_its_slot():
    state = state_of(trials=1, slots=1)
    carry_out(state, Assign(0, [Interval(0, 10)]))
    state.apply([TrialFailed(1.0, 0, 0, "why"), Idled(1.0, 0)])
    assert (state.measured, state.first_s[0], state.trial_s[0]) == ([], inf, inf)
    assert state.step_times.measured.sum() == 0


def test_a_trial_has_at_least_one_attempt():
    with pytest.raises(ConfigError, match="attempts is 0"):
        Terms(attempts=0)
