"""Population-based training: who is replaced by whom, and what is taken over."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import ceil, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.cluster import Cluster
from rota.core.errors import ConfigError
from rota.core.population.costs import AssignmentCosts
from rota.core.population.engine import PopulationEngine
from rota.core.population.events import (
    Assign,
    Clone,
    Cloned,
    Continue,
    Idled,
    Interval,
    Joined,
    Reported,
    Stop,
    TrialFailed,
)
from rota.core.population.view import PopulationView, Ranking, Terms, TrialStatus
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.config import TrialsConfig
from rota.policies.evolution.explore import Space
from rota.policies.evolution.pbt import GrowthAtClone, Pbt, quantiles
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Equal
from rota.simulator.population import PopulationScenario, simulate_trials

NAN = float("nan")
PLAIN = Pbt(explore=False)


@pytest.mark.parametrize(
    ("metrics", "lower", "upper"),
    [
        ([0.1, 0.2, 0.3, 0.4, NAN, 0.5], {0, 1}, {3, 5}),
        ([0.6, 0.6, 0.6, 0.6], {0}, {3}),
        ([0.5, 0.4], {1}, {0}),
        ([0.5], set(), set()),
        ([NAN, 0.5, NAN], set(), set()),
        ([NAN, NAN], set(), set()),
    ],
)
def test_the_quantiles_of_a_population(metrics, lower, upper):
    found = trials_in_quantiles(metrics, 0.25)
    assert (set(found[0]), set(found[1])) == (lower, upper)


def trials_in_quantiles(metrics, share):
    ranking = Ranking(metrics)
    lower, upper = quantiles(len(ranking), share)
    return [ranking[place] for place in lower], [ranking[place] for place in upper]


def test_an_accuracy_of_0_was_evaluated():
    assert trials_in_quantiles([0.0, 0.1, 0.2, 0.3], 0.25) == ([0], [3])


@given(st.lists(st.floats(0, 1) | st.just(NAN), max_size=30), st.floats(0.01, 0.5))
def test_nobody_is_in_both_quantiles_and_both_are_equally_many(metrics, share):
    lower, upper = trials_in_quantiles(metrics, share)
    evaluated = [value for value in metrics if value == value]
    wanted = min(ceil(share * len(evaluated)), len(evaluated) // 2)
    assert len(lower) == len(upper) == wanted
    assert not set(lower) & set(upper)
    between = [metrics[trial] for trial in range(len(metrics)) if metrics[trial] == metrics[trial]]
    assert sorted(between)[:wanted] == [metrics[trial] for trial in lower]
    assert sorted(between)[len(between) - wanted :] == [metrics[trial] for trial in upper]


def by_sorting_all(view, trial, pbt):
    """What population-based training is, said once more: sort all trials, and draw among the best."""
    interval = pbt.interval or view.terms.interval
    if view.fresh[trial] < interval:
        return Continue(trial)
    worth = {}
    for other in range(len(view.metric)):
        metric, diverged = float(view.metric[other]), view.steps[other] >= interval
        if view.status[other] != TrialStatus.STOPPED and (metric == metric or diverged):
            worth[other] = metric if metric == metric else -inf
    order = sorted(worth, key=lambda other: (worth[other], other))
    count = min(ceil(pbt.quantile * len(order)), len(order) // 2)
    better = [donor for donor in order[len(order) - count :] if worth[donor] > worth[trial]]
    if trial not in order[:count] or not better:
        return Continue(trial, reviewed=True)
    donor = better[int(view.random.integers(len(better)))]
    return Clone(trial, donor, dict(view.hyper[donor]), view.changes[donor])


OUTCOMES = st.one_of(
    st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0, NAN, inf, -inf, "fails"]), st.floats(allow_nan=False)
)
HAPPENINGS = st.lists(
    st.tuples(st.integers(0, 99), st.sampled_from([5, 10]), OUTCOMES, st.integers(0, 5)), max_size=80
)


@given(st.integers(1, 12), HAPPENINGS, st.sampled_from([0.1, 0.25, 0.5]), st.sampled_from([None, 5, 15]))
def test_a_kept_ranking_decides_what_sorting_all_trials_decides(trials, happenings, quantile, interval):
    """After every report: among equals and what is not a number, with trials stopped, failed, finished."""
    pbt = Pbt(quantile=quantile, interval=interval, explore=False)
    state = PopulationEngine(
        [{"lr": 0.1 * n} for n in range(trials)],
        Cluster.of_speeds([1.0]),
        Terms(10, 40),
        AssignmentCosts(),
        Equal(),
    )
    state.apply([Joined(0.0, 0)])
    for at_s, (chosen, steps, outcome, stops) in enumerate(happenings, start=1):
        if not state.waiting:
            break
        trial = state.waiting[chosen % len(state.waiting)]
        steps = min(steps, state.remaining(trial))
        state.request([Assign(0, [Interval(trial, steps)])])
        if outcome == "fails":
            state.apply([TrialFailed(at_s, 0, trial, ""), Idled(at_s, 0)])
            continue
        state.apply([Reported(at_s, 0, trial, steps, at_s - 1.0, at_s, 0.0, outcome), Idled(at_s, 0)])
        if state.to_review:
            before = state.random.bit_generator.state
            wanted = by_sorting_all(state, trial, pbt)
            state.random.bit_generator.state = before
            assert pbt.decide(state, trial) == wanted
            state.request([Stop(trial) if stops == 0 else wanted])


def test_the_worst_quarter_goes_on_as_one_of_the_best_quarter(population):
    state = population([0.1, 0.2, 0.3, 0.4, NAN, 0.5])
    state.changes[3], state.changes[5] = ("deepen 0",), ("widen 1 64", "deepen 1")
    donors = Counter()
    for _ in range(200):
        clone = PLAIN.decide(state, 1)
        assert isinstance(clone, Clone)
        assert clone.hyper == state.hyper[clone.donor]
        assert clone.changes == state.changes[clone.donor]
        donors[clone.donor] += 1
    assert donors.keys() == {3, 5}
    assert donors[3] == pytest.approx(100, abs=30)


def test_the_others_go_on_as_they_are(population):
    state = population([0.1, 0.2, 0.3, 0.4, NAN, 0.5])
    assert [PLAIN.decide(state, trial) for trial in (2, 3, 5)] == [
        Continue(t, reviewed=True) for t in (2, 3, 5)
    ]


def test_equals_do_not_clone_each_other(population):
    state = population([0.6, 0.6, 0.6, 0.6])
    assert [PLAIN.decide(state, trial) for trial in range(4)] == [
        Continue(t, reviewed=True) for t in range(4)
    ]


def test_only_donors_that_are_better_count(population):
    # both of the upper half, 2 and 3; 2 is no better than 0 and 1
    state = population([0.6, 0.6, 0.6, 0.9])
    half = replace(PLAIN, quantile=0.5)
    assert {half.decide(state, 0).donor for _ in range(50)} == {3}


def test_a_trial_without_a_metric_is_neither_replaced_nor_a_donor(population):
    state = population([0.1, NAN])
    state.to_review.append(1)
    assert PLAIN.decide(state, 0) == Continue(0, reviewed=True)
    state.fresh[1] = 50
    assert PLAIN.decide(state, 1) == Continue(1, reviewed=True)


def test_a_trial_that_diverged_is_the_worst(population):
    """Its metric is not a number after an interval: not the same as no metric yet."""
    state = population([0.1, NAN, 0.2])
    state.steps[1] = state.fresh[1] = 50
    state.to_review.append(1)
    assert PLAIN.decide(state, 1).donor == 2


@pytest.mark.parametrize(("status", "donor"), [(TrialStatus.FINISHED, 3), (TrialStatus.STOPPED, 2)])
def test_who_is_finished_may_be_a_donor_and_who_was_stopped_may_not(population, status, donor):
    state = population([0.1, 0.5, 0.6, 0.7])
    state.status[3] = status
    assert PLAIN.decide(state, 0).donor == donor


def test_what_the_clone_gets_is_not_the_dictionary_of_the_donor(population):
    state = population([0.1, 0.5])
    before = dict(state.hyper[1])
    state.to_review = [0]
    state.request([PLAIN.decide(state, 0)])
    state.hyper[0]["lr"] = 99.0
    assert state.hyper[1] == before


def test_what_a_clone_takes_over_and_what_it_keeps(population):
    state = population([0.1, 0.5])
    state.to_review = [0]
    state.steps[1] = 300
    state.checkpoint_node[1] = 7
    state.request([Pbt(explore=False).decide(state, 0)])
    assert (state.hyper[0], state.checkpoint_node[0]) == (state.hyper[1], 7)
    assert (state.steps[0], state.metric[0]) == (50, 0.1)
    assert state.fresh[0] == 0


def test_hyper_parameters_may_be_a_trials_own_for_good(population):
    hypers = [{"lr": 0.1, "batch_size": 32}, {"lr": 0.2, "batch_size": 512}]
    state = population([0.1, 0.5], hypers)
    assert Pbt(explore=False, keep=("batch_size",)).decide(state, 0).hyper == {"lr": 0.2, "batch_size": 32}
    both = Pbt(space={"batch_size": Space(values=(256.0, 512.0))}, keep=("batch_size",))
    assert both.decide(state, 0).hyper["batch_size"] == 32


def test_without_a_space_the_usual_hyper_parameters_are_explored_where_there_are_any(population):
    state = population([0.1, 0.5], [{"h": 1.0}, {"h": 2.0, "momentum": 0.9}])
    hypers = [Pbt().decide(state, 0).hyper for _ in range(300)]
    assert {hyper["h"] for hyper in hypers} == {2.0}
    assert len({hyper["momentum"] for hyper in hypers}) > 20
    assert max(hyper["momentum"] for hyper in hypers) < 1.0


def test_without_exploiting_a_bad_trial_keeps_its_weights_and_explores(population):
    state = population([0.1, 0.5])
    state.changes[0] = ("deepen 0",)
    clone = Pbt(exploit=False, resample=0.0).decide(state, 0)
    assert (clone.donor, clone.changes) == (0, ("deepen 0",))
    assert clone.hyper["lr"] in (0.1 * 0.8, 0.1 * 1.2)
    state.to_review = [0]
    state.request([clone])
    assert state.waiting == [0]


def test_a_trial_is_looked_at_after_an_interval_and_half_intervals_add_up(population):
    state = population([0.1, 0.5])
    state.fresh[0] = 25
    assert PLAIN.decide(state, 0) == Continue(0)
    state.to_review = [0]
    state.request([Continue(0)])
    assert state.fresh[0] == 25
    state.fresh[0] += 25
    assert isinstance(PLAIN.decide(state, 0), Clone)
    assert replace(PLAIN, interval=60).decide(state, 0) == Continue(0)


def test_to_have_been_looked_at_is_to_begin_anew(population):
    state = population([0.1, 0.5])
    state.to_review = [1]
    state.request([PLAIN.decide(state, 1)])
    assert state.fresh[1] == 0


def test_a_clone_may_deepen_or_widen_the_network_it_got(population):
    state = population([0.1, 0.5])
    state.changes[1] = ("deepen 1",)
    grow = GrowthAtClone(0.5, ("deepen 0", "widen 1 64"), most=3)
    found = Counter(Pbt(grow=grow).decide(state, 0).changes for _ in range(400))
    assert found.keys() == {("deepen 1",), ("deepen 1", "deepen 0"), ("deepen 1", "widen 1 64")}
    assert found[("deepen 1",)] == pytest.approx(200, abs=40)


def test_a_network_grows_only_so_often_and_is_not_widened_to_what_it_is():
    random = np.random.default_rng(0)
    grow = GrowthAtClone(1.0, ("widen 1 64",), most=2)
    assert grow.grown((), random) == ("widen 1 64",)
    assert grow.grown(("widen 1 64",), random) == ("widen 1 64",)
    assert grow.grown(("deepen 0", "deepen 0"), random) == ("deepen 0", "deepen 0")


class Twice:
    """Hands out lists with two intervals of a trial each."""

    def hand_out(self, view: PopulationView) -> Iterator[Assign]:
        while view.idle and view.waiting:
            (trial, steps) = view.first(1)[0]
            yield Assign(view.idle[0], [Interval(trial, steps), Interval(trial, steps)])


class Watched:
    """Lets an evolution decide and notes what it was asked about."""

    def __init__(self, inner: object) -> None:
        self.inner, self.asked = inner, []

    def decide(self, view: PopulationView, trial: int) -> object:
        assert view.status[trial] == TrialStatus.REPORTED
        self.asked.append((view.now_s, trial))
        return self.inner.decide(view, trial)


@pytest.mark.parametrize("report_each", [True, False])
def test_nobody_who_is_finished_is_judged_and_nobody_twice(slope, drawn, report_each):
    scene = PopulationScenario(
        drawn(4, 0), Cluster.of_speeds([1.0, 0.4]), Terms(10, 60), report_each=report_each
    )
    evolution = Watched(Pbt())
    found = simulate_trials(scene, slope(), PopulationPolicy(Twice(), evolution))
    assert (found.state.status == TrialStatus.FINISHED).all()
    assert len(set(evolution.asked)) == len(evolution.asked) == 4 * (5 if report_each else 2)


def test_a_clone_trains_with_the_weights_of_its_donor_from_its_next_part_on(slope):
    hypers = (
        {"lr": 0.1, "momentum": 0.0, "batch_size": 64},
        {"lr": 0.2, "momentum": 0.0, "batch_size": 64},
    )
    scene = PopulationScenario(hypers, Cluster.of_speeds([1.0, 2.0]), Terms(10, 30))
    timeline = simulate_trials(scene, slope(), PopulationPolicy(FifoAllocation(), PLAIN)).timeline
    assert [(e.at_s, e.trial, e.donor) for e in timeline if isinstance(e, Cloned)] == [(10.0, 0, 1)]
    reports = [(e.at_s, e.trial, round(e.metric, 6)) for e in timeline if isinstance(e, Reported)]
    # Trial 1 has the faster slot and gains 0.2 a step, from 0.001: 2.001, 4.001, 6.001 after 5, 10, 15 s.
    # Trial 0 reports 1.0 at 10 s and goes on from 4.001, gaining 0.2 a step: 6.001 at 20 s, 8.001 at 30 s,
    # or at 25 s if it gets the faster slot, which is idle from 15 s on.
    assert reports[:4] == [(5.0, 1, 2.001), (10.0, 0, 1.0), (10.0, 1, 4.001), (15.0, 1, 6.001)]
    assert reports[4:] == [(20.0, 0, 6.001), (25.0, 0, 8.001)]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"quantile": 0.0}, "quantile is 0.0"),
        ({"quantile": 0.6}, "quantile is 0.6"),
        ({"interval": 0}, "interval is 0"),
        ({"resample": 1.1}, "resample is 1.1"),
        ({"factors": ()}, "factors are"),
        ({"factors": (0.0, 1.2)}, "factors are"),
    ],
)
def test_an_option_out_of_range_says_what_would_be_right(options, says):
    with pytest.raises(ConfigError, match=says):
        Pbt(**options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"probability": 0.5}, "actions: none; give some"),
        ({"probability": 2.0, "actions": ("deepen 0",)}, "probability is 2.0"),
        ({"actions": ("shrink",)}, "'shrink' does not grow"),
        ({"actions": ("deepn 0",)}, "Did you mean 'deepen'"),
        ({"most": -1}, "most -1"),
    ],
)
def test_growth_that_makes_no_sense_says_so(options, says):
    with pytest.raises(ConfigError, match=says):
        GrowthAtClone(**options)


class Later(TrialsConfig):
    """Trials of which nothing is known before step 50."""

    def measured_from(self) -> int:
        return 50


WORDS, NUMBERS = Space(names=("sgd", "adam")), Space(values=(0.1, 0.2))
TRIALS = Later(interval=50, start={"lr": Space(0.1, 1.0), "optimizer": WORDS})


def test_options_that_fit_the_trials_are_fine():
    Pbt().check(TRIALS)
    Pbt(space={"lr": NUMBERS, "optimizer": WORDS}, keep=("optimizer",)).check(TRIALS)
    Pbt(interval=60).check(replace(TRIALS, interval=20))


@pytest.mark.parametrize(
    ("pbt", "trials", "says"),
    [
        (Pbt(space={"lrr": NUMBERS}), TRIALS, r"hyper-parameter in space: 'lrr'\. Did you mean 'lr'\?"),
        (Pbt(keep=("batch_size",)), TRIALS, r"hyper-parameter in keep: 'batch_size'"),
        (Pbt(space={"optimizer": Space(0.1, 1.0)}), TRIALS, r"space\.optimizer: trials begin with words"),
        (Pbt(space={"optimizer": NUMBERS}), TRIALS, r"space\.optimizer: trials begin with words"),
        (Pbt(space={"lr": WORDS}), TRIALS, r"space\.lr: trials begin with numbers"),
        (Pbt(), replace(TRIALS, interval=20), r"reviewed after 20 steps, but the curves begin at step 50"),
    ],
)
def test_options_that_do_not_fit_the_trials_are_found_before_anything_runs(pbt, trials, says):
    with pytest.raises(ConfigError, match=says):
        pbt.check(trials)


class Listed(TrialsConfig):
    """Trials that begin with what was recorded, in the order of its text."""

    def choices(self):
        return {"batch_size": [128, 16, 64], "optimizer": ["adam", "sgd"], "seed": [1, "any"]}


def test_without_a_space_what_trials_begin_with_is_explored(population):
    start = {"lr": Space(0.1, 0.4, log=True), "wd": Space(0.0, 0.5)}
    pbt = Pbt().fitted(TrialsConfig(start=start))
    assert pbt == Pbt(space=start)
    state = population([0.1, 0.5], [{"lr": 0.1, "wd": 0.0}, {"lr": 0.4, "wd": 0.5}])
    hypers = [pbt.decide(state, 0).hyper for _ in range(300)]
    assert {0.4 * 0.8, 0.4} < {hyper["lr"] for hyper in hypers}  # 0.4 · 1.2 is beyond the range
    assert {0.5 * 0.8, 0.5} < {hyper["wd"] for hyper in hypers}
    assert all(0.1 <= hyper["lr"] <= 0.4 and 0.0 <= hyper["wd"] <= 0.5 for hyper in hypers)


def test_what_was_recorded_is_a_list_in_order_and_words_among_numbers_stay_as_they_are():
    numbers, words = Space(values=(16.0, 64.0, 128.0)), Space(names=("adam", "sgd"))
    assert Pbt().fitted(Listed()).space == {"batch_size": numbers, "optimizer": words}


def test_a_space_that_is_given_is_all_that_is_explored_and_what_is_kept_is_not():
    start = {"lr": Space(0.1, 0.4), "wd": Space(0.0, 0.5)}
    trials = TrialsConfig(start=start)
    for explicit in (Pbt(space={"lr": Space(0.1, 1.0)}), Pbt(space={})):
        assert explicit.fitted(trials) is explicit
    assert Pbt(keep=("wd",)).fitted(trials).space == {"lr": start["lr"]}
    nothing = Pbt()
    assert nothing.fitted(TrialsConfig()) is nothing
