"""Agents and their files."""

import json

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.learning.agent import Agent, read_agent, write_agent
from rota.learning.problem import problem_of
from rota.policies.agents import FACTS, WEIGHTS


@pytest.fixture
def folder(tmp_path, origin):
    write_agent(tmp_path, Agent.new("structural", {}, seed=3), origin)
    return tmp_path


def edit(folder, **changes):
    facts = json.loads((folder / FACTS).read_text())
    (folder / FACTS).write_text(json.dumps({**facts, **changes}))


@pytest.mark.parametrize(("name", "options"), [("structural", {}), ("original", {"actions": 4})])
def test_an_agent_comes_back_as_it_was(tmp_path, origin, make_tree, name, options):
    agent = Agent.new(name, options, seed=3)
    write_agent(tmp_path, agent, origin)
    observations = problem_of(make_tree()).observations
    assert read_agent(tmp_path).all_probabilities(observations) == agent.all_probabilities(observations)


def test_probabilities_add_up_to_one_for_each_action(make_tree):
    problem = problem_of(make_tree(actions=("deepen 0", "nothing"), decisions=2))
    for row in Agent.new("structural", {}, seed=0).all_probabilities(problem.observations):
        assert len(row) == 2
        assert sum(row) == pytest.approx(1.0)


def test_weights_depend_on_the_seed_only():
    one, other, same = (Agent.new("structural", {}, seed).network.read.weight for seed in (1, 2, 1))
    assert not np.array_equal(one.detach(), other.detach())
    assert np.array_equal(one.detach(), same.detach())


def test_weights_are_plain_arrays(folder):
    with np.load(folder / WEIGHTS, allow_pickle=False) as found:
        assert all(found[name].dtype == np.float32 for name in found.files)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 3}, r"an agent of version 3, this rota reads 1 and 2; learn it again"),
        ({"format": "rota recording"}, "not the facts of an agent"),
        ({"network": "transformer"}, "unknown network 'transformer'"),
        ({"options": {"depth": 3}}, "of another version of rota"),
        ({"options": {"width": 8}}, "not the weights of this agent"),
        ({"sha256": "0"}, "damaged or cut short"),
    ],
)
def test_an_agent_from_elsewhere_is_told_from_ours(folder, changes, message):
    edit(folder, **changes)
    with pytest.raises(InputError, match=message):
        read_agent(folder)


def test_a_truncated_file_is_noticed(folder):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"weights\.npz: damaged or cut short"):
        read_agent(folder)
    (folder / FACTS).write_text((folder / FACTS).read_text()[:100])
    with pytest.raises(InputError, match=r"agent\.json: cannot be read"):
        read_agent(folder)


def test_pickles_are_never_loaded(folder):
    """Even with the checksum that goes with it."""
    import hashlib

    class Mean:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was loaded",))

    np.savez(folder / WEIGHTS, **{"read.weight": np.array([Mean()], dtype=object)})
    edit(folder, sha256=hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest())
    with pytest.raises(InputError, match="not the weights of this agent"):
        read_agent(folder)


def test_a_folder_without_an_agent_says_what_to_give(tmp_path):
    with pytest.raises(InputError, match=r"no agent in it \(agent.json is missing\)"):
        read_agent(tmp_path)
