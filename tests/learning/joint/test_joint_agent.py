"""The joint agent: its gradients, its decisions, its file, and learning that can be stopped."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.core.population.events import Grown, Reported
from rota.core.population.stepping import ASSIGN, REVIEW
from rota.learning.joint.cases import CaseGenerator
from rota.learning.joint.config import JointAgentConfig
from rota.learning.joint.learner import JointLearner
from rota.learning.joint.rollout import play, worths
from rota.library.processes import worker_pool
from rota.policies.agents import FACTS
from rota.policies.allocation.joint import Joint, form_of, read_weights, write_agent
from rota.policies.joint.features import ADVISED, FEATURES, GROWS, IDLE, NAMES
from rota.policies.joint.network import (
    LENGTHS,
    add_gradient,
    add_length_gradient,
    new_weights,
    score_lengths,
    scores,
    slopes_of_entropy,
    softmax,
    unflattened,
)
from rota.policies.population import PopulationPolicy
from rota.recordings.library import read_growth_trees
from rota.simulator.population import engine_for

TREES = Path("results/recordings/growth/feedforward1-digits")
HIDDEN = 5


@pytest.fixture(scope="module")
def cases():
    return CaseGenerator(read_growth_trees([TREES]))


def drawn_weights(seed: int = 0):
    """Return weights that are no rule: all of them are random."""
    random = np.random.default_rng(seed)
    return random.normal(0.0, 0.3, len(new_weights(HIDDEN, 0).flat))


def growing():
    """Return weights that grow whenever that is possible."""
    weights = new_weights(HIDDEN, 0)
    weights.past[GROWS] = 50.0
    return weights


# ── gradients ───────────────────────────────────────────────────────────────────────────────────────────────


def log_chances(features, flat):
    hidden, found = np.empty((len(features), HIDDEN)), np.empty(len(features))
    scores(features, len(features), flat, HIDDEN, hidden, found)
    entropy = softmax(found, len(features))
    return np.log(found), entropy, hidden


def numerical(function, flat):
    """Return the gradient of a function by differences."""
    found = np.zeros_like(flat)
    for at in range(len(flat)):
        step = np.zeros_like(flat)
        step[at] = 1e-5
        found[at] = (function(flat + step) - function(flat - step)) / 2e-5
    return found


def test_gradients_are_those_of_differences():
    features, flat = np.random.default_rng(1).normal(size=(4, FEATURES)), drawn_weights()
    logs, entropy, hidden = log_chances(features, flat)
    chances = np.exp(logs)
    gradient, of_entropy = np.zeros_like(flat), np.zeros_like(flat)
    add_gradient(features, hidden, (np.arange(4) == 2) - chances, 4, flat, HIDDEN, gradient)
    slopes = np.empty(4)
    slopes_of_entropy(chances, 4, entropy, slopes)
    add_gradient(features, hidden, slopes, 4, flat, HIDDEN, of_entropy)
    assert gradient == pytest.approx(numerical(lambda at: log_chances(features, at)[0][2], flat), abs=1e-7)
    assert of_entropy == pytest.approx(numerical(lambda at: log_chances(features, at)[1], flat), abs=1e-7)


def test_gradients_of_the_number_of_intervals_are_those_of_differences():
    seen, flat = np.random.default_rng(2).normal(size=(1, FEATURES)), drawn_weights(3)
    allowed = np.array([True, True, False, True])

    def chances(at):
        _, _, hidden = log_chances(seen, at)
        found = np.empty(LENGTHS)
        score_lengths(hidden[0], allowed, at, HIDDEN, found)
        softmax(found, LENGTHS)
        return found, hidden

    found, hidden = chances(flat)
    assert found[2] == 0.0
    gradient = np.zeros_like(flat)
    add_length_gradient(seen[0], hidden[0], (np.arange(LENGTHS) == 3) - found, flat, HIDDEN, gradient)
    assert gradient == pytest.approx(numerical(lambda at: np.log(chances(at)[0][3]), flat), abs=1e-7)


def test_an_episode_is_worth_what_it_reached_beyond_the_others_in_points():
    # the others reach 0.61, 0.60 and 0.605 on average; no difference counts more than 5 points
    assert worths([0.60, 0.62, 0.61]) == pytest.approx([-1.5, 1.5, 0.0])
    assert worths([0.1, 0.9]) == pytest.approx([-5.0, 5.0])


# ── decisions ───────────────────────────────────────────────────────────────────────────────────────────────


def test_an_agent_begins_with_the_rule(cases):
    weights = new_weights(HIDDEN, 0)
    assert [NAMES[at] for at in np.flatnonzero(weights.past)] == ["idle", "grows", "expected", "advised"]
    assert weights.past[ADVISED] > 0.0 > weights.past[IDLE]
    case = replace(cases.case(0, 0), deadline_s=1e9)
    done = timeline_of(case, weights.flat)
    reports = [event.trial for event in done if isinstance(event, Reported)]
    assert len(reports) == 7 * len(case.places)  # all paths to their ends: six decisions and the root
    assert not any(isinstance(event, Grown) for event in done)


def timeline_of(case, flat):
    engine = engine_for(case.scene, case.landscape())
    engine.write(reviews=False)
    engine.use(form_of(flat, HIDDEN))
    engine.advance()
    return engine.timeline


def test_nothing_is_assigned_that_would_end_after_the_deadline(cases):
    for number in range(6):
        case = cases.case(number, 5)
        weights = unflattened(drawn_weights(number), HIDDEN)
        weights.past[IDLE] = -50.0
        done = timeline_of(case, weights.flat)
        assigned = sum(event.steps for event in done if type(event).__name__ == "Assigned")
        reported = sum(event.steps for event in done if isinstance(event, Reported))
        assert assigned == reported > 0
        assert max(event.at_s for event in done) <= case.deadline_s * (1.0 + 1e-9)


def test_python_and_compiled_code_make_the_same_decisions(cases, tmp_path):
    case, weights = cases.case(1, 0), growing()
    write_agent(tmp_path, weights, {})
    policy, engine = PopulationPolicy(Joint(tmp_path)), engine_for(case.scene, case.landscape())
    while question := engine.advance():
        assert question in (REVIEW, ASSIGN)
        for decision in policy.answer(question, engine):
            engine.commit(decision)
    done = timeline_of(case, weights.flat)
    assert sum(isinstance(event, Grown) for event in done) > 0
    assert engine.timeline == done


def test_the_same_seed_draws_the_same_decisions(cases):
    case, flat = cases.case(2, 0), drawn_weights()
    first, again, other = (play(case, flat, HIDDEN, seed) for seed in (1, 1, 2))
    assert first.best == again.best
    assert first.gradient.tolist() == again.gradient.tolist() != other.gradient.tolist()
    assert first.drawn == first.decisions > 0
    assert play(case, flat, HIDDEN).drawn == 0


# ── learning and files ──────────────────────────────────────────────────────────────────────────────────────

FOLDERS = tuple(sorted(TREES.resolve().iterdir()))[:6]
CONFIG = JointAgentConfig(updates=4, cases_per_update=2, episodes_per_case=2, hidden=HIDDEN)


def learner(folder, **other):
    return JointLearner(replace(CONFIG, **other), FOLDERS, folder, "x")


def test_learning_that_was_stopped_gives_the_same_agent(tmp_path):
    with worker_pool(1) as pool:
        whole = learner(tmp_path / "a")
        whole.learn(pool)
        stopped = learner(tmp_path / "b")
        rows = []

        def stop(row):
            rows.append(row)
            stopped.save()
            if len(rows) == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            stopped.learn(pool, stop)
        resumed = learner(tmp_path / "b")
        resumed.resume()
        assert len(resumed.rows) == 2
        resumed.learn(pool)
    assert resumed.flat.tolist() == whole.flat.tolist()
    assert np.abs(whole.flat - new_weights(HIDDEN, 0).flat).max() > 0.001
    other = JointLearner(CONFIG, FOLDERS, tmp_path / "b", "another")
    with pytest.raises(InputError, match="another agent is being learned here"):
        other.resume()


def test_the_file_of_an_agent(tmp_path):
    weights = unflattened(drawn_weights(), HIDDEN)
    write_agent(tmp_path, weights, {"seed": 1})
    assert read_weights(tmp_path).flat.tolist() == weights.flat.tolist()
    facts = json.loads((tmp_path / FACTS).read_text("utf-8"))
    assert facts["kind"] == "joint"
    facts["features"][0]["name"] = "other"
    (tmp_path / FACTS).write_text(json.dumps(facts), "utf-8")
    read_weights.cache_clear()
    with pytest.raises(InputError, match="it sees other features"):
        read_weights(tmp_path)
