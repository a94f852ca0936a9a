"""Agents that earlier versions of rota wrote are read, and decide as they did; a wrong kind is refused.

The files in `version1` were written by rota 0.1.0: an agent of each kind, its history, its evaluation, and
what it decided then. Times of placement agents are exact; probabilities of torch may differ in the last bits
from machine to machine.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import rota
from rota import cli
from rota.core.errors import InputError
from rota.core.network import likeliest
from rota.figures.learned import read_learned
from rota.figures.placement import read_placement_learned
from rota.learning.agent import Agent, arrays, read_agent, write_agent
from rota.learning.files import EVALUATION, kind_of_evaluation
from rota.learning.outcome import read_evaluations, write_evaluations
from rota.learning.placement.compare import case_of
from rota.learning.placement.outcome import read_comparison, write_comparison
from rota.learning.placement.run import PlacementRun, config_of
from rota.learning.problem import problem_of, read_trees
from rota.policies.agents import FACTS, KINDS, WEIGHTS, kind_of, read_facts, read_npz
from rota.policies.allocation.learned import SEEN, SHIPPED, Learned, read_weights
from rota.policies.allocation.learned import write_agent as write_placement_agent
from rota.policies.population import PopulationPolicy
from rota.recordings.folder import Provenance
from rota.simulator.population import simulate_trials

VERSION_1 = ("adaptation", "placement")
"""Kinds of agents that version 1 had."""
OLD = Path(__file__).parent / "version1"
TREE = Path(__file__).parents[2] / "results/recordings/trees/convnet2-cifar10-16-early-seed0"


def decided(kind):
    return json.loads((OLD / kind / "decisions.json").read_text())


def all_probabilities(agent):
    (tree,) = read_trees([TREE])
    return agent.all_probabilities(problem_of(tree).observations)


def makespans(agent, cases):
    found = []
    for each in cases:
        case = case_of(each["number"], each["dispatch"], 0)
        done = simulate_trials(case.scene, case.landscape(), PopulationPolicy(Learned(agent)))
        found.append({**each, "makespan_s": done.makespan_s, "decisions": done.decisions})
    return found


def rewritten(kind, folder):
    """The old agent of a kind, written as of now."""
    known = read_facts(OLD / kind)
    if kind == "adaptation":
        write_agent(folder, read_agent(OLD / kind), Provenance(**known.provenance))
    else:
        others = {"config": known.config, "provenance": known.provenance, "evaluation": known.evaluation}
        write_placement_agent(folder, read_weights(OLD / kind), known.about, **others)
    return folder


@pytest.mark.parametrize("kind", VERSION_1)
def test_an_old_agent_becomes_a_new_one_with_the_same_weights_and_facts(kind, tmp_path):
    old, new = read_facts(OLD / kind), read_facts(rewritten(kind, tmp_path))
    assert json.loads((OLD / kind / FACTS).read_text())["version"] == 1
    assert json.loads((tmp_path / FACTS).read_text())["version"] == 2
    assert (old.kind, new.kind) == (kind, kind)
    assert (tmp_path / WEIGHTS).read_bytes() == (OLD / kind / WEIGHTS).read_bytes()
    for name in ("network", "about", "config", "provenance", "evaluation", "sha256"):
        assert getattr(new, name) == getattr(old, name), name
    assert old.features == ()
    assert all(each.name and each.size > 0 and each.meaning for each in new.features)


def test_an_old_agent_that_changes_networks_decides_as_it_did(tmp_path):
    before, agent = decided("adaptation"), read_agent(OLD / "adaptation")
    found = all_probabilities(agent)
    assert [likeliest(row) for row in found] == before["actions"]
    assert np.array(found) == pytest.approx(np.array(before["probabilities"]), rel=1e-6)
    assert all_probabilities(read_agent(rewritten("adaptation", tmp_path))) == found
    weights = read_npz((OLD / "adaptation" / WEIGHTS).read_bytes())
    assert all(np.array_equal(arrays(agent.network)[name], values) for name, values in weights.items())
    assert (agent.learned_from, agent.about["seed"]) == ({"54f70f4430db03f4"}, 3)


def test_an_old_agent_that_places_trials_decides_as_it_did_to_the_last_digit(tmp_path):
    before = decided("placement")
    assert makespans(OLD / "placement", before["agent"]) == before["agent"]
    assert makespans(rewritten("placement", tmp_path), before["agent"]) == before["agent"]


def test_the_shipped_agent_decides_as_before_its_file_was_converted():
    before = decided("placement")["shipped"]
    assert makespans(None, before) == before


def test_an_old_agent_that_places_trials_is_known_as_learned():
    """So that the same command does not learn it again."""
    run = PlacementRun(OLD / "placement", config_of(OLD / "placement"))
    assert run.done
    assert run.tried


@pytest.mark.parametrize("kind", VERSION_1)
def test_an_old_evaluation_is_read(kind, tmp_path):
    """It says the same when it is written as of now."""
    read, write = {
        "adaptation": (read_evaluations, write_evaluations),
        "placement": (read_comparison, write_comparison),
    }[kind]
    old = read(OLD / kind)
    write(tmp_path, *old)
    assert read(tmp_path) == old
    assert old[1].startswith("rota ")
    assert [kind_of_evaluation(folder / EVALUATION) for folder in (OLD / kind, tmp_path)] == [kind, kind]


def test_old_histories_are_drawn():
    assert read_learned(OLD / "adaptation").history[-1].episodes == 640
    assert [row.update for row in read_placement_learned(OLD / "placement").rows] == [1, 2, 3]


def test_an_agent_of_another_kind_is_refused_in_a_sentence():
    places, changes = KINDS["placement"].does, KINDS["adaptation"].does
    with pytest.raises(rota.RotaError, match=f"this agent {places} .*; give one that {changes} "):
        rota.Agent.load(SHIPPED)
    with pytest.raises(
        InputError, match=f"this agent {changes} .*; give one that {places} .*rota learn config/"
    ):
        Learned(OLD / "adaptation")


def test_a_simulation_refuses_an_agent_of_another_kind(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ("simulate", "--population", "4", "--slots", "1,2", "--seeds", "1", "--allocations", "learned")
    assert cli.main([*words, "--set", f"options.learned.agent={OLD / 'adaptation'}"]) == 2
    says = "changes networks while they train (kind 'adaptation'); give one that places trials on slots"
    assert says in capsys.readouterr().err


def test_a_kind_that_is_not_known_is_refused(tmp_path):
    rewritten("placement", tmp_path)
    found = json.loads((tmp_path / FACTS).read_text())
    (tmp_path / FACTS).write_text(json.dumps(found | {"kind": "oracle"}))
    assert kind_of(tmp_path) == "oracle"
    with pytest.raises(InputError, match="an agent of kind 'oracle'; this rota knows adaptation, placement"):
        read_facts(tmp_path)


@pytest.mark.parametrize("kind", VERSION_1)
def test_an_agent_that_sees_other_features_is_refused(kind, tmp_path):
    rewritten(kind, tmp_path)
    found = json.loads((tmp_path / FACTS).read_text())
    found["features"][0]["name"] = "another"
    (tmp_path / FACTS).write_text(json.dumps(found))
    read = {"adaptation": Agent.load, "placement": Learned}[kind]
    with pytest.raises(InputError, match="it sees other features"):
        read(tmp_path)


def test_the_features_of_a_placement_agent_are_as_many_as_its_inputs():
    assert len({each.name for each in SEEN}) == len(SEEN) == read_weights(SHIPPED).a.shape[0]
