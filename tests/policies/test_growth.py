"""The adaptation policies: what all of them promise, and what each of them does."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.network import NOTHING, Change, GrowthPolicy, Layer, Observation, Structure, likeliest
from rota.learning.agent import Agent
from rota.policies.growth import Fixed, Never

FOUR = (Change("deepen", 0), Change("deepen", 1), Change("widen", 1, 64), NOTHING)
SIZES = {"in": 8, "out": 32, "kernel": 3, "stride": 1, "groups": 1}
LAYERS = (Layer("conv2d", tuple(SIZES.items())), Layer("relu"), Layer("linear", (("in", 32), ("out", 10))))
OBSERVATION = Observation(Structure(LAYERS, ((0, 1), (1, 2))), ((0, 1), (2,)), 30.0, 120.0, FOUR)

POLICIES: dict[str, Callable[[], GrowthPolicy]] = {
    "never": Never,
    "fixed": lambda: Fixed((1, 0, 1)),
    "learned": lambda: Agent.new("structural", {}, seed=0),
}


@pytest.mark.parametrize("name", POLICIES)
class TestEveryPolicy:
    @given(
        actions=st.sets(st.sampled_from(FOUR[1:3])),
        left=st.floats(0, 1),
        made=st.lists(st.integers(0, 1), max_size=5),
    )
    def test_gives_a_probability_for_each_action_and_they_add_up_to_one(self, name, actions, left, made):
        some = (FOUR[0], *actions, NOTHING)
        observation = replace(OBSERVATION, actions=some, left_s=120.0 * left, made=tuple(made))
        chances = POLICIES[name]().probabilities(observation)
        assert len(chances) == len(some)
        assert all(0.0 <= chance <= 1.0 for chance in chances)
        assert sum(chances) == pytest.approx(1.0)

    def test_answers_the_same_each_time(self, name):
        one = POLICIES[name]()
        assert (
            list(one.probabilities(OBSERVATION))
            == list(one.probabilities(OBSERVATION))
            == list(POLICIES[name]().probabilities(OBSERVATION))
        )


def test_never_does_nothing_wherever_that_stands():
    assert Never().probabilities(OBSERVATION) == [0.0, 0.0, 0.0, 1.0]
    assert Never().probabilities(replace(OBSERVATION, actions=(NOTHING, *FOUR[:2]))) == [1.0, 0.0, 0.0]


def test_a_fixed_sequence_goes_on_with_its_last_action_when_it_is_over():
    fixed = Fixed((2, 0, 1))
    seen = [replace(OBSERVATION, made=(3,) * count) for count in range(5)]
    assert [likeliest(fixed.probabilities(observation)) for observation in seen] == [2, 0, 1, 1, 1]
