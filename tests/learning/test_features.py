"""Numbers for what is seen."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.network import NOTHING, SHRINK, Change, Layer, Observation, Structure
from rota.learning import features
from rota.training.describe import observation_of
from rota.training.models.registry import MODELS, build
from rota.training.net2net import blocks, deepen

GROUPS = len(features.GROUPS)


def observation_of_model(name: str, steps: int = 0, actions: tuple[Change, ...] | None = None) -> Observation:
    """A model that has been deepened so often, in one block after the other."""
    shapes = {"classification": ((3, 32, 32), 10), "language": ((16,), 20)}
    network = build(name, *shapes.get(MODELS[name].task, ((4,), 2)))
    names = blocks(network)
    for step in range(steps if names else 0):
        deepen(network, names[step % len(names)])
    every = (*(Change("deepen", block) for block in range(len(names))), SHRINK, NOTHING)
    return observation_of(network, left_s=30.0, budget_s=120.0, actions=actions or every, made=[0] * steps)


def row(layer: Layer) -> list[float]:
    return features.layers(Structure((layer,), ()))[0].tolist()


def test_a_known_kind_is_told_by_its_group():
    for at, kinds in enumerate(features.GROUPS.values()):
        for kind in kinds:
            found = row(Layer(kind))
            assert found[:GROUPS] == [float(at == group) for group in range(GROUPS)]
            assert found[GROUPS : GROUPS + features.CODE] == [0.0] * features.CODE


def test_no_kind_is_in_two_groups():
    kinds = [kind for group in features.GROUPS.values() for kind in group]
    assert len(set(kinds)) == len(kinds)


@given(st.text(max_size=20), st.text(max_size=20))
def test_unknown_kinds_differ_unless_they_are_the_same(one, other):
    first, second = (features.code(kind, features.CODE) for kind in (one, other))
    assert np.isfinite(first).all()
    assert np.array_equal(first, second) == (one == other)


def test_an_unknown_kind_is_in_no_group_and_has_a_code():
    found = row(Layer("swiglu"))
    assert found[:GROUPS] == [0.0] * GROUPS
    assert found[GROUPS : GROUPS + features.CODE] == features.code("swiglu", features.CODE).tolist()


def test_the_code_of_a_kind_is_the_same_in_another_process():
    """Not from Python's own hash of a text, which changes from one process to the next."""
    code = "from rota.learning.features import code; print(code('swiglu', 8).tolist())"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == str(
        features.code("swiglu", 8).tolist()
    )


def test_sizes_are_logarithms():
    """In, out, kernel, stride, groups, each log₂(1 + size) / 8; then the area and the share of the work."""
    sizes = (("in", 3), ("out", 31), ("kernel", 3), ("stride", 2), ("groups", 1))
    found = row(Layer("conv2d", sizes))
    logs = [math.log2(each) / 8 for each in (4, 32, 4, 3, 2)]
    assert found[-7:] == pytest.approx([*logs, -2 / 10, 1.0])


def test_the_shares_of_the_work_add_up_to_one():
    assert features.layers(observation_of_model("resnet18").structure)[:, -1].sum() == pytest.approx(1.0)


def test_a_network_that_does_no_work_has_no_shares_of_it():
    found = features.layers(Structure((Layer("strange"), Layer("relu")), ((0, 1),)))
    assert np.isfinite(found).all()
    assert found[:, -1].tolist() == [0.0, 0.0]


def test_the_actions_of_convnet2_by_hand():
    """Work in all: 3·32·9 + 32 at 1024 positions, 32·32·9 + 32 at 256, 320, and 1 where it is squeezed."""
    work = (3 * 32 * 9 + 32) * 1024 + (32 * 32 * 9 + 32) * 256 + 320 + 1
    weights = 3 * 32 * 9 + 32 + 32 * 32 * 9 + 32 + 320 + 1
    wide = Change("widen", 1, 64)
    found = features.actions(
        observation_of_model("convnet2", actions=(Change("deepen", 0), wide, NOTHING, SHRINK))
    )
    assert found.shape == (4, features.ACTION)
    assert found[:, :4].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    assert found[0, 4:] == pytest.approx(
        [
            math.log1p(32 * 32 * 9 * 1024 / work),
            math.log1p(32 * 32 * 9 / weights),
            (3 * 32 * 9 + 32) * 1024 / work,
            *(0.0, 1 / 4, 0.0, 0.0, 0.0),
        ]
    )
    assert found[1, 4:] == pytest.approx(
        [
            math.log1p(((32 * 32 * 9 + 32) * 256 + 320) / work),
            math.log1p((32 * 32 * 9 + 32 + 320) / weights),
            (32 * 32 * 9 + 32) * 256 / work,
            *(-2 / 10, 1 / 4, 1 / 2, 0.0, 1.0),
        ],
        rel=1e-4,  # the squeezing layer counts as one weight
    )
    assert not found[2:, 4:].any()


def test_deeper_blocks_are_seen_to_be_deeper():
    once, twice = (features.actions(observation_of_model("feedforward1", steps))[0] for steps in (0, 2))
    assert (once[8], twice[8]) == (1 / 4, 3 / 4)
    assert once[10] == twice[10] == 1.0  # linear


def test_of_a_residual_block_the_width_is_that_of_the_layer_that_is_made_wider():
    """The first layer of a bottleneck has 64 channels, its last one 256."""
    at = blocks(build("resnet50", (3, 32, 32), 10)).index("layer1.0")
    found = features.actions(observation_of_model("resnet50", actions=(Change("widen", at, 128), NOTHING)))
    assert found[0, -1] == 1.0


def test_an_action_for_a_block_that_is_not_there_is_told_by_its_kind_only():
    found = features.actions(observation_of_model("convnet2", actions=(Change("deepen", 9), NOTHING)))
    assert found.tolist() == [[1.0] + [0.0] * 11, [0.0, 0.0, 0.0, 1.0] + [0.0] * 8]


@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_finite_features_at_any_growth(name, steps):
    observation = observation_of_model(name, steps)
    layers, actions = features.layers(observation.structure), features.actions(observation)
    assert layers.shape == (len(observation.structure.layers), features.LAYER)
    assert actions.shape == (len(observation.actions), features.ACTION)
    for found in (layers, actions, features.network(observation), features.time(observation.left)):
        assert np.isfinite(found).all()
        assert np.abs(found).max() < 10.0


def test_the_network_as_a_whole_is_its_depth_and_what_was_decided():
    """ConvNet2 has three layers that mix channels; one more after a decision."""
    assert features.network(observation_of_model("convnet2")).tolist() == [0.3, 0.0]
    assert features.network(observation_of_model("convnet2", 1)).tolist() == [0.4, 1 / 3]
    assert len(features.network(observation_of_model("convnet2"))) == features.NETWORK


def test_the_time_by_hand():
    """2·left − 1, then sin(π·i·left / 2) for i from 1 to 7: at ½, eighths of a turn."""
    root = math.sqrt(0.5)
    assert features.time(0.5) == pytest.approx([0, root, 1, root, 0, -root, -1, -root], abs=1e-12)
    assert features.time(0.0) == pytest.approx([-1, *[0] * 7])
    assert len(features.time(0.3)) == features.TIME


def test_the_original_s_time_by_hand():
    """5·sin(2π·i·left) for i from 1 to 8: at ⅛, an eighth of a turn more each time."""
    root = 5 * math.sqrt(0.5)
    found = features.original_time(0.125)
    assert found == pytest.approx([root, 5, root, 0, -root, -5, -root, 0], abs=1e-12)
    assert len(found) == features.ORIGINAL_TIME


@given(st.floats(0, 1), st.floats(0, 1))
def test_times_that_are_near_are_seen_as_near(one, other):
    """No number changes faster than by 7π/2 of the time that is between them."""
    apart = np.abs(features.time(one) - features.time(other)).max()
    assert apart <= 7 * math.pi / 2 * abs(one - other) + 1e-12
