"""The adaptation policies: what all of them promise, and what each of them does."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.change import NOTHING, Change
from rota.core.errors import ConfigError
from rota.core.sight import Adaptation, Sight, likeliest
from rota.core.structure import Layer, Structure
from rota.policies.adaptation.registry import ADAPTATIONS, adaptation_class

FOUR = (Change("deepen", 0), Change("deepen", 1), Change("widen", 1, 64), NOTHING)
SIZES = {"in": 8, "out": 32, "kernel": 3, "stride": 1, "groups": 1}
LAYERS = (Layer("conv2d", tuple(SIZES.items())), Layer("relu"), Layer("linear", (("in", 32), ("out", 10))))
SIGHT = Sight(Structure(LAYERS, ((0, 1), (1, 2))), ((0, 1), (2,)), 30.0, 120.0, FOUR)

MAKE: dict[str, Callable[[type], Adaptation]] = {
    "never": lambda kind: kind(),
    "random": lambda kind: kind(),
    "fixed": lambda kind: kind((1, 0, 1)),
    "learned": lambda kind: kind.new("structural", {}, seed=0),
}
"""How a policy is made; one that is added to the registry needs a line here."""


def policy(name: str) -> Adaptation:
    return MAKE[name](adaptation_class(name))


@pytest.mark.parametrize("name", ADAPTATIONS)
class TestEveryPolicy:
    @given(
        actions=st.sets(st.sampled_from(FOUR[1:3])),
        left=st.floats(0, 1),
        made=st.lists(st.integers(0, 1), max_size=5),
    )
    def test_gives_a_probability_for_each_action_and_they_add_up_to_one(self, name, actions, left, made):
        some = (FOUR[0], *actions, NOTHING)
        sight = replace(SIGHT, actions=some, left_s=120.0 * left, made=tuple(made))
        chances = policy(name).probabilities(sight)
        assert len(chances) == len(some)
        assert all(0.0 <= chance <= 1.0 for chance in chances)
        assert sum(chances) == pytest.approx(1.0)

    def test_answers_the_same_each_time(self, name):
        one = policy(name)
        assert (
            list(one.probabilities(SIGHT))
            == list(one.probabilities(SIGHT))
            == list(policy(name).probabilities(SIGHT))
        )

    def test_says_what_it_is(self, name):
        assert adaptation_class(name).__doc__
        assert [other for other in ADAPTATIONS if adaptation_class(other) is adaptation_class(name)] == [name]


def test_never_does_nothing_wherever_that_stands():
    assert policy("never").probabilities(SIGHT) == [0.0, 0.0, 0.0, 1.0]
    assert policy("never").probabilities(replace(SIGHT, actions=(NOTHING, *FOUR[:2]))) == [1.0, 0.0, 0.0]


def test_at_random_all_are_alike():
    assert policy("random").probabilities(SIGHT) == [0.25] * 4


def test_a_fixed_sequence_goes_on_with_its_last_action_when_it_is_over():
    fixed = adaptation_class("fixed")((2, 0, 1))
    seen = [replace(SIGHT, made=(3,) * count) for count in range(5)]
    assert [likeliest(fixed.probabilities(sight)) for sight in seen] == [2, 0, 1, 1, 1]


def test_an_unknown_policy_suggests_what_was_probably_meant():
    with pytest.raises(
        ConfigError, match=r"^unknown adaptation policy 'nevr'\. Did you mean 'never'\? Known: never, "
    ):
        adaptation_class("nevr")


def test_simple_policies_need_no_torch():
    code = """if True:
        import sys
        from rota.policies.adaptation.registry import adaptation_class
        for name in ("never", "random", "fixed"):
            adaptation_class(name)
        print(*sys.modules)
    """
    modules = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not {"torch", "rota.learning.agent"} & set(modules)
