"""What a recorded network looked like at each decision."""

import logging
from pathlib import Path

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.core.network import Change, Layer
from rota.learning.networks.registry import build as build_network
from rota.learning.problem import actions_of, problem_of, seen_in
from rota.recordings.library import recording_folders
from rota.recordings.tree import read_tree
from rota.training.clock import StoppedClock
from rota.training.describe import with_blocks
from rota.training.models.registry import build
from rota.training.net2net import blocks, deepen
from rota.training.setup import Setup

FEW = {"actions": ("deepen 0", "nothing"), "decisions": 2}


def test_there_is_one_for_each_beginning_that_a_decision_follows_on(make_tree):
    """1 before the first of three decisions between four actions, 4 before the second, then 16."""
    seen = seen_in(make_tree())
    assert len(seen) == 1 + 4 + 16
    assert list(seen)[:6] == [(), (0,), (1,), (2,), (3,), (0, 0)]


def test_nothing_leaves_the_network_as_it_was_and_order_does_not_matter(make_tree):
    seen = seen_in(make_tree())
    fresh = with_blocks(build("convnet2", (3, 32, 32), 10))
    assert seen[()] == seen[3,] == seen[3, 3] == fresh
    assert seen[0, 3] == seen[3, 0] == seen[0,]
    assert seen[0, 1] == seen[1, 0]
    assert len({structure.fingerprint for structure, _ in seen.values()}) == 1 + 3 + 6


def test_each_growth_is_seen_where_it_happened(make_tree):
    """Conv, norm and relu more in a block of three layers, linear and relu in one of two."""
    seen = seen_in(make_tree())
    assert [len(part) for part in seen[()][1]] == [3, 3, 2]
    assert [len(part) for part in seen[0, 0][1]] == [9, 3, 2]
    assert [len(part) for part in seen[2, 1][1]] == [3, 6, 4]


@pytest.mark.parametrize("made", [(), (0,), (1, 1), (2, 0), (3, 2)])
def test_it_is_the_network_that_a_trainer_has_after_the_same_changes(make_tree, made):
    tree = make_tree(data="digits")
    trainer = Setup(model="convnet2", data="digits", device="cpu").trainer(StoppedClock(), seed=7)
    for action in made:
        trainer.change(Change.parse(tree.actions[action]))
    assert seen_in(tree)[made] == with_blocks(trainer.network)


def test_wider_networks_are_those_of_a_trainer_too(make_tree):
    tree = make_tree(data="digits", actions=("widen 0 48", "widen 1 48", "nothing"), decisions=2)
    trainer = Setup(model="convnet2", data="digits", device="cpu").trainer(StoppedClock(), seed=0)
    trainer.change(Change("widen", 0, 48))
    structure, parts = seen_in(tree)[0,]
    assert (structure, parts) == with_blocks(trainer.network)
    assert structure.layers[0].size("out") == structure.layers[4].size("in") == 48


@pytest.mark.parametrize("made", [(0, 0), (0, 1), (1, 0), (0, 2, 0), (2, 1)])
def test_to_widen_again_is_to_do_nothing_as_in_a_trainer(make_tree, made):
    tree = make_tree(data="digits", actions=("widen 0 48", "widen 0 40", "deepen 0", "nothing"), decisions=4)
    trainer = Setup(model="convnet2", data="digits", device="cpu").trainer(StoppedClock(), seed=0)
    for action in made:
        trainer.change(Change.parse(tree.actions[action]))
    assert seen_in(tree)[made] == with_blocks(trainer.network)


def test_residual_networks_are_seen_with_their_blocks(make_tree):
    network = build("resnet18", (3, 32, 32), 10)
    deepen(network, blocks(network)[2])
    assert seen_in(make_tree(model="resnet18", **{**FEW, "actions": ("deepen 2", "nothing")}))[
        0,
    ] == with_blocks(network)


@pytest.mark.parametrize(
    ("written", "name"),
    [("ConvNet2", "convnet2"), ("CONVNET-LARGE", "convnet-large"), ("ConvNetLarge", "convnet-large")],
)
def test_models_are_known_however_they_are_written(make_tree, caplog, written, name):
    seen = seen_in(make_tree(model=written, **FEW))
    assert seen[()] == with_blocks(build(name, (3, 32, 32), 10))
    assert not caplog.records


def test_the_data_say_how_large_the_first_and_the_last_layer_are(make_tree):
    layers = seen_in(make_tree(data="cifar100", **FEW))[()][0].layers
    assert (layers[0].size("in"), layers[-2].size("out")) == (3, 100)
    layers = seen_in(make_tree(data="digits", model="feedforward1", **FEW))[()][0].layers
    assert (layers[1].size("in"), layers[-1].size("out")) == (64, 10)


def test_the_size_that_images_were_made_before_is_that_of_the_network_s_input(make_tree):
    tree = make_tree(model="feedforward1", details={"asked": {"setup": {"size": 16}}}, **FEW)
    assert seen_in(tree)[()] == with_blocks(build("feedforward1", (3, 16, 16), 10))


def test_data_that_nobody_knows_are_taken_for_cifar10(make_tree):
    assert seen_in(make_tree(data="photos", **FEW)) == seen_in(make_tree(data="cifar10", **FEW))


def test_networks_that_act_are_seen_as_well(make_tree):
    """CartPole has four numbers to see and two things to do."""
    layers = seen_in(make_tree(model="dqn", data="cartpole", **FEW))[()][0].layers
    assert (layers[0].size("in"), layers[-1].size("out")) == (4, 2)


def test_a_network_that_rota_does_not_know_is_stood_for_by_a_layer_per_block(make_tree, caplog):
    with caplog.at_level(logging.WARNING):
        seen = seen_in(make_tree(model="Unheard"))
    assert "Unheard: not a model of rota's" in caplog.text
    structure, parts = seen[()]
    assert structure.layers == tuple(Layer(f"unheard {block}") for block in range(3))
    assert structure.edges == ((0, 1), (1, 2))
    assert parts == ((0,), (1,), (2,))
    structure, parts = seen[1, 1]
    assert [layer.kind for layer in structure.layers] == ["unheard 0", *["unheard 1"] * 3, "unheard 2"]
    assert structure.edges == ((0, 1), (1, 2), (2, 3), (3, 4))
    assert parts == ((0,), (1, 2, 3), (4,))
    assert seen[3, 3] == seen[()]


def test_stand_ins_of_different_networks_differ(make_tree):
    one, other = (seen_in(make_tree(model=name, **FEW))[()][0] for name in ("Strange", "Stranger"))
    assert one.fingerprint != other.fingerprint


def test_a_stand_in_has_a_layer_even_if_nothing_can_be_done_to_it(make_tree):
    seen = seen_in(make_tree(model="Strange", actions=("nothing",), decisions=2))
    assert all(len(structure.layers) == 1 for structure, _ in seen.values())


@pytest.mark.parametrize("network", ["structural", "original"])
def test_agents_can_read_stand_ins(make_tree, network):
    observations = problem_of(make_tree(model="Strange")).observations
    scores = build_network(network, {})
    assert np.isfinite(scores(scores.encode(observations)).detach().numpy()).all()


@pytest.mark.parametrize("model", ["convnet2", "Strange"])
def test_to_shrink_takes_back_the_last_growth_if_there_was_any(make_tree, model):
    seen = seen_in(make_tree(model=model, actions=("deepen 0", "deepen 1", "shrink", "nothing"), decisions=4))
    assert seen[0, 2] == seen[2,] == seen[0, 3, 2] == seen[()]
    assert seen[0, 1, 2] == seen[0,] != seen[()]
    assert seen[2, 1] == seen[1,]
    assert seen[0, 2, 2] == seen[()]


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (
            ("deepen 3", "nothing"),
            r"^deepen 3: ConvNet2 has 3 blocks, counted from 0; was it another model\?$",
        ),
        (("widen 2 64", "nothing"), r"^widen 2 64: not possible in ConvNet2 \(.*\); was it another model\?$"),
        (("widen 0 32", "nothing"), r"^widen 0 32: not possible in ConvNet2 \(.*has 32 units already"),
        (("deeper 0", "nothing"), r"^tree ConvNet2 early: unknown change 'deeper'. Did you mean 'deepen'\?"),
        (("widen 0", "nothing"), r"^tree ConvNet2 early: widen 0: not a change; write 'deepen BLOCK'"),
    ],
)
def test_actions_that_do_not_fit_the_model_are_an_error(make_tree, actions, message):
    with pytest.raises(InputError, match=message):
        seen_in(make_tree(model="ConvNet2", actions=actions, decisions=2))


def test_actions_are_those_of_the_tree_in_its_order(make_tree):
    tree = make_tree(actions=("nothing", "widen 1 64", "deepen 0"), decisions=1)
    assert actions_of(tree) == (Change("nothing"), Change("widen", 1, 64), Change("deepen", 0))


SHIPPED = Path(__file__).parents[2] / "results" / "recordings" / "trees"


@pytest.mark.parametrize("folder", sorted(recording_folders(SHIPPED)), ids=lambda folder: folder.name)
def test_shipped_trees_are_seen_as_the_networks_whose_seconds_they_tell(folder):
    """A recording has the seconds per step of each structure that was trained, by its fingerprint."""
    tree = read_tree(folder)
    known = tree.details["seconds_per_step"]
    assert {structure.fingerprint for structure, _ in seen_in(tree).values()} <= set(known)
