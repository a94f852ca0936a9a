"""The overhead of a report: loading a trial, evaluating it, saving its checkpoint.

A step takes a second; `Reported` reads: at, slot, trial, steps, began, ended, moved, metric.
"""

import pytest

from rota.config.bind import bind
from rota.core.cluster import Cluster
from rota.core.errors import ConfigError
from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Clone, Reported
from rota.simulator.noise import ReportOverhead
from rota.simulator.population_config import PopulationsConfig

ONE = Cluster.of_speeds((1.0,))
TWO = Cluster.of_speeds((1.0, 2.0))
OVERHEAD = ReportOverhead(load_s=3.0, evaluate_s=2.0, save_s=1.0)


def reports(done):
    return [event for event in done.timeline if isinstance(event, Reported)]


def test_a_slot_that_goes_on_with_its_trial_need_not_take_it_up(run):
    assert reports(run([{}], ONE, (0, [(0, 10)]), (0, [(0, 10)]), overhead=OVERHEAD)) == [
        Reported(
            16.0, 0, 0, 10, 0.0, 16.0, 4.0, 0.0
        ),  # 3 + 10 + 2 + 1 s; computing is training and evaluating
        Reported(29.0, 0, 0, 10, 16.0, 29.0, 1.0, 0.0),
    ]


def test_trials_that_take_turns_are_taken_up_each_time(run):
    lists = [(0, [(trial, 10)]) for trial in (0, 1, 0, 1)]
    assert [each.moved_s for each in reports(run([{}, {}], ONE, *lists, overhead=OVERHEAD))] == [4.0] * 4


def test_a_trial_that_was_elsewhere_meanwhile_is_taken_up_again(run):
    lists = [(0, [(0, 10)]), (1, [(0, 10)]), (0, [(0, 10)]), (0, [(0, 10)])]
    found = reports(run([{}], TWO, *lists, steps=40, overhead=OVERHEAD))
    assert [(each.slot, each.moved_s) for each in found] == [(0, 4.0), (1, 4.0), (0, 4.0), (0, 1.0)]


def test_a_clone_is_taken_up_from_its_donor(run, verdicts):
    lists = [(0, [(0, 10)]), (0, [(1, 10)]), (0, [(1, 10)]), (0, [(0, 10)])]
    evolution = verdicts({(1, 10): Clone(1, 0, {}, ())})
    found = reports(run([{}, {}], ONE, *lists, overhead=OVERHEAD, evolution=evolution))
    assert [(each.trial, each.moved_s) for each in found] == [(0, 4.0), (1, 4.0), (1, 4.0), (0, 4.0)]


def test_a_fast_slot_evaluates_faster(run):
    (found,) = reports(run([{}], TWO, (1, [(0, 10)]), steps=10, overhead=OVERHEAD))
    assert found == Reported(10.0, 1, 0, 10, 0.0, 10.0, 4.0, 0.0)  # 3 + 10 / 2 + 2 / 2 + 1


def test_every_part_of_a_list_pays_and_the_dispatch_is_paid_once(run):
    done = run(
        [{}, {}],
        ONE,
        (0, [(0, 10), (1, 10)]),
        steps=10,
        overhead=OVERHEAD,
        costs=AssignmentCosts(dispatch_s=7.0),
    )
    assert [each.moved_s for each in reports(done)] == [11.0, 4.0]


def test_policies_measure_what_a_part_takes_with_its_evaluation(run):
    done = run([{}], ONE, (0, [(0, 10)]), (0, [(0, 10)]), overhead=OVERHEAD)
    assert done.state.step_times.step_s[0, 0] == pytest.approx(1.2)  # 12 s for 10 steps


def test_a_configuration_may_say_it_and_recordings_from_before_say_nothing():
    small = {"trials": 1, "steps": 50}
    assert bind(PopulationsConfig, {"population": small}).scene(0).overhead == ReportOverhead()
    given = bind(PopulationsConfig, {"population": small, "overhead": {"save_s": 1.5}})
    assert given.scene(0).overhead == ReportOverhead(save_s=1.5)
    assert ReportOverhead.recorded({"asked": {}}) == ReportOverhead()
    assert ReportOverhead.recorded(
        {"besides": {"load_s": 1.0, "evaluate_s": 2.0, "save_s": 3.0}}
    ) == ReportOverhead(1.0, 2.0, 3.0)


@pytest.mark.parametrize("wrong", [-1.0, float("inf"), float("nan")])
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(ConfigError, match="evaluate_s is"):
        ReportOverhead(evaluate_s=wrong)
