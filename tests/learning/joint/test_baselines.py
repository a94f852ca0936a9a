"""Cases of placement and growth, and what is compared on them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.core.population.events import Grown, Reported
from rota.learning.joint.baselines import (
    Part,
    Reached,
    Rule,
    all_rules,
    cluster_labels,
    oracle,
    paired,
    play,
    random_policy,
    tune,
)
from rota.learning.joint.cases import SHARES, SLOTS, TRIALS, CaseGenerator, finish_alone_s
from rota.recordings.library import read_growth_trees
from rota.simulator.population import simulate_trials

TREES = [Path(f"results/recordings/growth/{name}") for name in ("convnet3-digits", "feedforward1-digits")]


@pytest.fixture(scope="module")
def trees():
    return read_growth_trees(TREES)


@pytest.fixture(scope="module")
def cases(trees):
    return CaseGenerator(trees).draw(12, seed=3)


def test_cases_are_as_they_were_defined_and_the_same_each_time(trees, cases):
    for case, again in zip(cases, CaseGenerator(trees).draw(12, seed=3), strict=True):
        assert case.row() == again.row()
        assert TRIALS[0] <= len(set(case.places)) == len(case.places) <= TRIALS[1]
        assert SLOTS[0] <= len(case.cluster.all_slots) <= SLOTS[1]
        assert 1 <= len({slot.device for slot in case.cluster.all_slots}) <= 3
        trials = len(case.places)
        ends = [finish_alone_s(case.trees, case.places, case.cluster, n) for n in range(1, trials + 1)]
        assert case.deadline_s in ends[int(SHARES[0] * trials) :]
    assert len({case.row()[1:] for case in cases}) == len(cases)
    assert any(len(case.pairs) > 1 for case in cases)


def test_too_few_trees_are_refused(trees):
    with pytest.raises(InputError, match="a case has 4 trials or more"):
        CaseGenerator(trees[:3])


def test_the_oracle_is_the_best_node_that_a_trial_alone_on_its_fastest_slot_reaches_in_time(cases):
    case = cases[0]
    best = 0.0
    for place in case.places:
        tree = case.trees.trees[place]
        fastest = max(slot.speed_of(f"{tree.model} 32") for slot in case.cluster.all_slots)
        for prefix in tree.nodes:
            walk = [prefix[:length] for length in range(len(prefix) + 1)]
            if sum(map(tree.seconds, walk)) / fastest <= case.deadline_s * (1.0 + 1e-12):
                best = max(best, tree.nodes[prefix].accuracy)
    assert oracle(case) == best


def test_no_choices_are_better_than_the_oracle(cases):
    for case in cases:
        for policy in (random_policy(), Rule(Part("promote"), Part("at-start")).policy()):
            assert play(case, policy, seed=1).accuracy <= oracle(case)


def test_what_a_rule_reached_is_what_its_timeline_says(cases):
    policy = Rule(Part("finish"), Part("stump", (("left", 0.3),)), Part("asha")).policy()
    case = cases[1]
    done = simulate_trials(case.scene, case.landscape(), policy)
    last = {event.trial: event.metric for event in done.timeline if isinstance(event, Reported)}
    found = play(case, policy)
    assert found.accuracy == max(last.values())
    assert found.best_three == pytest.approx(np.mean(sorted(last.values())[-3:]))
    assert any(isinstance(event, Grown) for event in done.timeline)
    assert all(event.at_s <= case.deadline_s for event in done.timeline)
    chosen = max(sorted(last), key=last.__getitem__)
    node = done.state.walked.node_of[chosen]
    assert found.test_accuracy == case.trees.nodes.test_accuracy[node]


def test_the_time_to_an_accuracy_is_that_of_the_first_report_with_it():
    found = Reached(((1.0, 0, 0.5), (2.0, 1, 0.7), (3.0, 0, 0.4)), (0.1, 0.6))
    assert (found.accuracy, found.test_accuracy) == (0.7, 0.6)
    assert [found.time_to(accuracy) for accuracy in (0.5, 0.6, 0.8)] == [1.0, 2.0, np.inf]


def test_the_best_rule_in_tuning_is_chosen(cases):
    rules = [Rule(Part("fifo")), Rule(Part("promote", (("reduction_factor", 2.0),)))]
    tuned = tune(cases[:4], rules)
    means = [np.mean([play(case, rule.policy()).accuracy for case in cases[:4]]) for rule in rules]
    assert (tuned.rule, tuned.accuracy) == (rules[int(np.argmax(means))], max(means))
    assert str(rules[1]) == "promote(reduction_factor=2) + never"
    assert len(set(map(str, all_rules()))) == len(all_rules())


def test_networks_that_are_mixed_are_one_cluster_and_clusters_count_alike(cases):
    def on(*models):
        return replace(cases[0], places=tuple(places[model] for model in models))

    places = {tree.model: at for at, tree in enumerate(cases[0].trees.trees)}
    apart = [on("convnet3"), on("convnet3"), on("feedforward1")]
    assert cluster_labels(apart) == [0, 0, 1]
    assert cluster_labels([*apart, on("convnet3", "feedforward1")]) == [0, 0, 0, 0]
    mean, low, high, clusters = paired(apart, [1.0, 3.0, 4.0])
    assert (mean, clusters) == (3.0, 2)  # of 2 and 4; Student's t for 1 degree is 12.706
    assert (low, high) == pytest.approx((3.0 - 12.706, 3.0 + 12.706))
