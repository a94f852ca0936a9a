"""What is seen at a decision, and which action is taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.network import NOTHING, Layer, Observation, Structure, likeliest


@pytest.mark.parametrize(
    ("chances", "action"),
    [([1.0], 0), ([0.1, 0.7, 0.2], 1), ([0.25] * 4, 0), ([0.2, 0.4, 0.4], 1), ([0, 0, 1], 2)],
)
def test_the_likeliest_is_taken_and_of_equals_the_first(chances, action):
    assert likeliest(chances) == action


@given(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3]), min_size=1))
def test_none_is_likelier_and_none_before_is_as_likely(chances):
    action = likeliest(chances)
    assert all(chance <= chances[action] for chance in chances)
    assert all(chance < chances[action] for chance in chances[:action])


def test_the_time_left_is_a_share_of_the_budget():
    observation = Observation(Structure((Layer("relu"),), ()), (), 30.0, 120.0, (NOTHING,))
    assert observation.left == 0.25
    assert observation.made == ()
