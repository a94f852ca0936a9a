"""A rehearsal that asks is the rehearsal that is told."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from rota.core.cluster import Cluster, NodeChange, Slot, Slowdown
from rota.core.population.costs import AssignmentCosts
from rota.core.population.view import Terms
from rota.learning.placement.cases import CaseDistribution, PlacementCase
from rota.learning.placement.environment import PlacementQuestion, PlacementQuestions
from rota.learning.placement.rollout import Scorer, play
from rota.policies.allocation.finish import LISTS, NOTHING, STEPS
from rota.policies.allocation.learned import Learned, scores, write_agent
from rota.policies.population import PopulationPolicy
from rota.simulator.noise import ReportOverhead, TimingNoise
from rota.simulator.population import PopulationScenario, simulate_trials

WEIGHTS = Scorer(hidden=8, seed=3).weights
TROUBLED = PopulationScenario(
    hypers=({},) * 7,
    cluster=Cluster.of_slots(
        tuple(Slot(node, speed) for node, speed in ((0, 1.0), (0, 0.7), (1, 2.0), (2, 0.2))),
        changes=(NodeChange(2.0, 1, joins=False), NodeChange(5.0, 1, joins=True), NodeChange(1.0, 2, True)),
        slowdowns=(Slowdown(3.0, 0, 1.5),),
    ),
    terms=Terms(50, 170),
    costs=AssignmentCosts(dispatch_s=0.1, latency_s=0.05),
    noise=TimingNoise(0.1, 0.05, seed=4),
)
"""Nodes fail, come late and slow down; trials that move wait for their checkpoints."""


def drawn(count: int) -> Iterator[PopulationScenario]:
    """Scenes as agents learn from."""
    for seed in range(count):
        yield CaseDistribution().draw(np.random.default_rng(seed)).scene


def answered(scene: PopulationScenario, choose: Callable[[PlacementQuestion], int]) -> PlacementQuestions:
    """All questions of a rehearsal, answered like this."""
    questions = PlacementQuestions(PlacementCase(scene))
    while questions.due is not None:
        questions.answer(choose(questions.due))
    return questions


@pytest.fixture
def learned(tmp_path) -> Learned:
    """An allocation whose agent has not learned anything: it does all sorts of things."""
    write_agent(tmp_path, WEIGHTS, {})
    return Learned(tmp_path, careful=False)


COSTLY = replace(TROUBLED, overhead=ReportOverhead(load_s=0.3, evaluate_s=0.2, save_s=0.1))


@pytest.mark.parametrize("scene", [TROUBLED, replace(TROUBLED, report_each=False), COSTLY, *drawn(3)])
def test_the_answers_of_an_allocation_give_its_timeline(scene, learned):
    asked = answered(scene, lambda due: int(np.argmax(scores(due.features, due.allowed, WEIGHTS))))
    simulated = simulate_trials(scene, PlacementCase(scene).landscape(), PopulationPolicy(learned))
    assert asked.engine.timeline == simulated.timeline
    assert asked.engine.now_s == simulated.makespan_s
    assert asked.engine.decisions == simulated.decisions


def test_what_is_asked_is_what_agents_learn_from():
    for seed, scene in enumerate(drawn(3)):
        case = PlacementCase(scene)
        episode = play(case, WEIGHTS, seed, share=1.0)
        chosen, asked = iter(episode.chosen.tolist()), []
        done = answered(scene, lambda due, chosen=chosen, asked=asked: asked.append(due) or next(chosen))
        assert np.array_equal([due.features for due in asked], episode.features)
        assert np.array_equal([due.allowed for due in asked], episode.allowed)
        assert done.engine.now_s / case.bound_s == episode.ratio


@pytest.mark.parametrize("scene", [TROUBLED, *drawn(5)])
def test_a_list_that_is_not_there_is_the_same_as_one_that_is(scene):
    questions, random, masked = PlacementQuestions(PlacementCase(scene)), np.random.default_rng(0), 0
    while (due := questions.due) is not None:
        parts = [due.outlook.parts(questions.engine, candidate) for candidate in range(1, len(due.allowed))]
        for candidate in range(1, len(due.allowed)):
            assert due.allowed[due.nearest(candidate)]
            assert parts[due.nearest(candidate) - 1] == parts[candidate - 1]
            masked += not due.allowed[candidate]
        questions.answer(int(random.choice(np.flatnonzero(due.allowed))))
    assert masked


def test_what_is_there_is_nearest_to_itself():
    for scene in drawn(5):
        answered(scene, itself)


def itself(due: PlacementQuestion) -> int:
    """The last candidate that there is, having looked at all."""
    there = np.flatnonzero(due.allowed).tolist()
    assert [due.nearest(candidate) for candidate in there] == there
    return there[-1]


def test_the_shortest_list_is_nearest_to_leaving_the_only_slot_idle():
    due = PlacementQuestions(PlacementCase(PopulationScenario(({},) * 3, Cluster.of_speeds([1.0])))).due
    assert not due.allowed[NOTHING]
    nearest = due.nearest(NOTHING)
    assert 1 <= nearest <= LISTS
    assert due.outlook.candidates[nearest, STEPS] == due.outlook.candidates[1:, STEPS].min()
