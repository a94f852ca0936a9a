"""The numbers of a rehearsal, from its timeline."""

import math

import pytest

from rota.core.cluster import Cluster
from rota.core.population.events import (
    Assigned,
    Cloned,
    Idled,
    Joined,
    Reported,
    Retired,
    Stopped,
    TrialFailed,
    TrialFinished,
)
from rota.results.population.metrics import MeasuredBound, Usage
from rota.results.population.repetition import measure


def test_a_slot_computes_communicates_loses_or_is_idle(by_hand):
    gpu, cpu = by_hand.repetitions[0].slots
    # Slot 0: parts of 10, 15 and 15 s, one second of each to move something; 10 s idle in between.
    assert (gpu.there_s, gpu.computing_s, gpu.communicating_s, gpu.lost_s) == (50.0, 37.0, 3.0, 0.0)
    assert (gpu.idle_s, gpu.idle_share, gpu.lists, gpu.parts) == (10.0, 0.2, 3, 3)
    # Slot 1 is there for 30 s and loses what it did in the last 10.
    assert (cpu.there_s, cpu.computing_s, cpu.communicating_s, cpu.lost_s) == (30.0, 19.0, 1.0, 10.0)
    assert (cpu.idle_share, cpu.lists, cpu.parts) == (0.0, 2, 1)


def usage(events, cluster, end_s):
    found = Usage(cluster)
    for event in events:
        found.see(event)
    return found.until(end_s)


def measured_bound_s(events, slots):
    found = MeasuredBound(slots)
    for event in events:
        found.see(event)
    return found.seconds


def test_a_slot_that_was_given_up_while_busy_counts_until_its_list_is_done():
    events = [
        Joined(0.0, 0),
        Assigned(0.0, 0, 1, 50),
        Retired(5.0, 0),
        Reported(10.0, 0, 0, 50, 0.0, 10.0, 0.0, math.nan),
        Idled(10.0, 0),
        Retired(10.0, 1),
    ]
    first, second = usage([*events, Joined(0.0, 1)], Cluster.of_speeds([1.0, 1.0]), 40.0)
    assert (first.there_s, first.idle_share) == (10.0, 0.0)
    assert second.there_s == 0.0  # given up before it came
    assert second.idle_share == 0.0


def test_a_slot_that_was_given_up_and_is_needed_again_is_there_again():
    events = [
        Joined(0.0, 0),
        Retired(5.0, 0),
        Assigned(20.0, 0, 1, 50),
        Reported(30.0, 0, 0, 50, 20.0, 30.0, 0.0, math.nan),
        Idled(30.0, 0),
    ]
    (slot,) = usage(events, Cluster.of_speeds([1.0]), 40.0)
    assert (slot.there_s, slot.computing_s, slot.idle_s) == (5.0 + 20.0, 10.0, 15.0)


def test_reports_at_the_end_of_a_list_are_counted_by_when_their_training_ended():
    events = [
        Joined(0.0, 0),
        Assigned(0.0, 0, 2, 100),
        Reported(20.0, 0, 0, 50, 0.0, 10.0, 2.0, math.nan),
        Reported(20.0, 0, 1, 50, 10.0, 20.0, 0.0, math.nan),
        Idled(20.0, 0),
    ]
    (slot,) = usage(events, Cluster.of_speeds([1.0]), 20.0)
    assert (slot.computing_s, slot.communicating_s, slot.idle_s) == (18.0, 2.0, 0.0)


def test_what_a_failed_part_took_is_lost_and_the_list_goes_on():
    events = [
        Joined(0.0, 0),
        Assigned(0.0, 0, 2, 100),
        TrialFailed(4.0, 0, 0, "why"),
        Reported(14.0, 0, 1, 50, 4.0, 14.0, 1.0, math.nan),
        Idled(14.0, 0),
    ]
    (slot,) = usage(events, Cluster.of_speeds([1.0]), 14.0)
    assert (slot.lost_s, slot.computing_s, slot.communicating_s, slot.idle_s) == (4.0, 9.0, 1.0, 0.0)


def test_the_least_that_was_computed_can_have_taken_is_shared_out_evenly_unless_one_trial_is_too_long():
    reports = [Reported(9.0, 0, trial, 1, 0.0, 4.0, 1.0, math.nan) for trial in (0, 1, 2, 3)]
    assert measured_bound_s(reports, 2) == 6.0
    assert measured_bound_s([*reports, reports[0], reports[0]], 2) == 9.0
    assert measured_bound_s([], 2) > 0.0


def test_the_outcome_of_a_population(by_hand):
    done = by_hand.repetitions[0]
    assert (done.makespan_s, done.finished, done.stopped, done.clones, done.retired) == (50.0, 2, 0, 1, 0)
    assert (done.best_accuracy, done.final_accuracy, done.to_target_s) == (0.75, 0.75, 35.0)


def test_batch_sizes_are_those_that_trials_had_when_they_were_trained(by_hand):
    # Trial 1 has 32 on b; after it was cloned it has 16.
    assert by_hand.repetitions[0].batch_sizes == {"a": {"16": 150}, "b": {"32": 50}}


def test_the_final_accuracy_is_the_best_of_the_last_reports():
    events = [
        Reported(1.0, 0, 0, 1, 0.0, 1.0, 0.0, 0.9),
        Reported(2.0, 0, 0, 1, 1.0, 2.0, 0.0, 0.3),
        Reported(3.0, 0, 1, 1, 2.0, 3.0, 0.0, 0.4),
        Stopped(3.0, 0),
        TrialFinished(3.0, 1),
        Cloned(3.0, 1, 1, {}, ()),
    ]
    about = {"seed": 0, "target": math.inf, "lower_bound_s": 1.0, "decisions": 3, "wall_s": 1.0}
    done = measure(events, [{}, {}], Cluster.of_speeds([1.0]), **about)
    assert (done.best_accuracy, done.final_accuracy, done.to_target_s) == (0.9, 0.4, None)
    assert (done.finished, done.stopped) == (1, 1)
    assert done.clones == 0  # a trial that only explores is no clone
    assert done.batch_sizes == {}


def test_averages_over_the_repetitions(by_hand):
    assert (by_hand.makespan_s, by_hand.lower_bound_s, by_hand.ratio) == (50.0, 25.0, 2.0)
    assert by_hand.decisions_per_s == pytest.approx(10 / 0.003)
    assert by_hand.best_accuracy == 0.75
    gpu, _ = by_hand.slot_use()
    assert (gpu.computing_s, gpu.lists) == (37.0, 6)
    assert by_hand.batch_sizes() == {"a": {"16": 300}, "b": {"32": 100}}


def test_what_was_never_measured_has_no_average():
    events = [Joined(0.0, 0), Reported(1.0, 0, 0, 1, 0.0, 1.0, 0.0, math.nan), TrialFinished(1.0, 0)]
    about = {"seed": 0, "target": math.inf, "lower_bound_s": 1.0, "decisions": 1, "wall_s": 1.0}
    done = measure(events, [{}], Cluster.of_speeds([1.0]), **about)
    assert (done.best_accuracy, done.final_accuracy, done.to_target_s) == (None, None, None)
