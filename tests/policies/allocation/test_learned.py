"""The learned allocation: its files, its network, and the agent that comes with rota."""

import json
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Assign, NodeFailed
from rota.learning.placement.cases import STEP_S, CaseDistribution
from rota.learning.placement.compare import case_of, shuffled
from rota.learning.placement.rollout import Scorer
from rota.policies.agents import FACTS, WEIGHTS, read_facts
from rota.policies.allocation.era import Era
from rota.policies.allocation.eta import Eta
from rota.policies.allocation.finish import CANDIDATES, NOTHING, Finish, Outlook
from rota.policies.allocation.hrfs import Hrfs
from rota.policies.allocation.learned import (
    FEATURES,
    SHIPPED,
    Learned,
    read_weights,
    scores,
    seen,
    write_agent,
)
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Equal
from rota.simulator.population import simulate_trials

NETWORK = Scorer(hidden=8, seed=3)


@pytest.fixture
def agent(tmp_path):
    write_agent(tmp_path / "agent", NETWORK.weights, {"updates": 0})
    return tmp_path / "agent"


def ratio(number, dispatch, allocation):
    case = case_of(number, dispatch, repetition=0)
    return simulate_trials(case.scene, Equal(STEP_S), PopulationPolicy(allocation)).makespan_s / case.bound_s


def test_compiled_scores_are_those_of_the_network():
    import torch

    features = np.random.default_rng(0).normal(size=(CANDIDATES, FEATURES)).astype(np.float32)
    allowed = np.arange(CANDIDATES) % 3 > 0
    found = torch.from_numpy(scores(features, allowed, NETWORK.weights)).log_softmax(-1)
    with torch.no_grad():
        wanted = NETWORK(torch.from_numpy(features)[None], torch.from_numpy(allowed)[None])[0]
    assert np.isneginf(found.numpy()[~allowed]).all()
    assert found[allowed].tolist() == pytest.approx(wanted[allowed].tolist(), abs=1e-5)


def test_what_is_seen_does_not_depend_on_units_of_time(population):
    one, other = population(9, [1.0, 3.0, 0.2], steps=200), population(9, [10.0, 30.0, 2.0], steps=200)
    for slot in range(3):
        views = [seen(state, slot, Outlook(state, slot)) for state in (one, other)]
        assert views[0][0] == pytest.approx(views[1][0], abs=1e-5)
        assert (views[0][1] == views[1][1]).all()


def test_what_is_seen_does_not_depend_on_the_order_of_slots(population):
    one, other = population(9, [1.0, 3.0, 0.2], steps=200), population(9, [0.2, 1.0, 3.0], steps=200)
    for slot in range(3):
        views = [seen(state, at, Outlook(state, at)) for state, at in ((one, slot), (other, (slot + 1) % 3))]
        assert views[0][0] == pytest.approx(views[1][0], abs=1e-6)


def test_where_it_has_not_learned_it_does_as_finish_does(population, tmp_path):
    """While a node is gone, or a slot takes three times as long as it was said to."""
    write_agent(tmp_path, shuffled(NETWORK.weights, 1), {})
    for happened in (None, NodeFailed(1.0, 2), "slower"):
        state = population(9, [1.0, 3.0, 0.2, 2.0], AssignmentCosts(dispatch_s=0.1), steps=200)
        if happened == "slower":
            state.step_times.observe(3, 0, 3 * float(state.step_times.expected_s[3, 0]))
        elif happened is not None:
            state.apply([happened])
        learned, finish = (
            [(slot, each.parts) for slot, each in hands(state, allocation)]
            for allocation in (Learned(tmp_path), Finish())
        )
        assert (learned == finish) == (happened is not None)


def hands(state, allocation):
    """What would be handed out first, without doing it."""
    return [(hand.slot, hand) for hand in islice(allocation.hand_out(state), 1)]


def test_each_list_is_there_once(population):
    """Of two candidates of as many steps, from the same end of the queue, the first."""
    state = population(2, [1.0, 2.0], steps=100, interval=50)
    state.request([Assign(0, state.first(1))])
    outlook = Outlook(state, slot=1)
    _, allowed = seen(state, 1, outlook)
    steps = outlook.candidates[allowed, 0].tolist()
    assert allowed[NOTHING]
    assert len(steps) == len(set(steps))


# files


def test_an_agent_is_read_as_it_was_written(agent):
    assert all((one == other).all() for one, other in zip(read_weights(agent), NETWORK.weights, strict=True))
    assert read_facts(agent).about == {"updates": 0}


def damage(agent, what):
    if what == "cut short":
        (agent / WEIGHTS).write_bytes((agent / WEIGHTS).read_bytes()[:-20])
    elif what == "missing":
        (agent / WEIGHTS).unlink()
    else:
        facts = json.loads((agent / FACTS).read_text())
        facts |= {"version": 99} if what == "version" else {"format": "another"}
        (agent / FACTS).write_text(json.dumps(facts))


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("cut short", "damaged or cut short"),
        ("missing", "cannot be read"),
        ("version", "an agent of version 99, this rota reads 1 and 2"),
        ("format", "not the facts of an agent"),
    ],
)
def test_a_damaged_agent_says_what_is_wrong_and_how_to_learn_it_again(agent, what, says):
    damage(agent, what)
    read_weights.cache_clear()
    with pytest.raises(InputError, match=f"{says}.*rota learn config/learn/place.toml"):
        Learned(agent)


def test_no_agent_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no agent in it"):
        Learned(tmp_path)


def test_an_agent_that_sees_something_else_is_an_error(tmp_path):
    fewer = NETWORK.weights._replace(a=np.zeros((FEATURES - 1, 8), np.float32))
    write_agent(tmp_path, fewer, {})
    with pytest.raises(InputError, match="another version"):
        Learned(tmp_path)


# the agent that comes with rota


CASES = tuple(range(100, 112))
"""Not those that it is reported on."""


@pytest.fixture(scope="module")
def reached():
    """Allocation → ratios, for all cases without a dispatch cost and with one of a quarter of an interval."""
    allocations = {"learned": Learned(), "era": Era(), "eta": Eta(), "hrfs": Hrfs(), "finish": Finish()}
    return {
        name: np.array([[ratio(number, cost, each) for number in CASES] for cost in (0.0, 0.25)])
        for name, each in allocations.items()
    }


def test_the_shipped_agent_is_near_the_least_possible_where_dispatching_is_free(reached):
    assert reached["learned"][0].mean() < 1.05


@pytest.mark.parametrize("rule", ["era", "eta", "hrfs"])
def test_the_shipped_agent_is_ahead_of_the_rules_of_the_originals(reached, rule):
    assert (reached[rule] / reached["learned"]).mean() > 1.1


@pytest.mark.parametrize("seed", [1, 2, 3])  # that of 0 is so bad that it takes far longer
def test_the_shipped_agent_is_not_a_rule_in_disguise(reached, tmp_path, seed):
    """With its weights shuffled it is a good deal worse."""
    write_agent(tmp_path, shuffled(read_weights(SHIPPED), seed=seed), {})
    worse = [ratio(number, 0.25, Learned(tmp_path)) for number in CASES]
    assert (np.array(worse) / reached["learned"][1]).mean() > 1.1


def test_the_shipped_agent_copes_with_one_slot_and_one_trial():
    for slots, trials in (((1, 1), (1, 1)), ((1, 1), (30, 30)), ((40, 40), (3, 3)), ((3, 3), (300, 300))):
        case = CaseDistribution(slots=slots, trials=trials).draw(np.random.default_rng(0))
        scene = replace(case.scene, noise=replace(case.scene.noise, noise=0.0))
        done = simulate_trials(scene, Equal(STEP_S), PopulationPolicy(Learned()))
        assert done.makespan_s >= case.bound_s * (1 - 1e-9)
