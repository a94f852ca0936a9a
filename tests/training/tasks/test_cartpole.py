"""CartPole as Gymnasium plays it, with a way to stop and go on."""

import io

import gymnasium
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rota.core.errors import ConfigError
from rota.training.tasks.reinforcement import EPISODES, LIMIT, CartPoles, mean_return


def balance(seen: torch.Tensor) -> list[int]:
    """Push to the side to which the pole falls, and a little to where the cart is: holds it for 500 steps."""
    weights = torch.tensor([0.1, 0.5, 1.0, 1.0])
    return (seen @ weights > 0).long().tolist()


def test_the_games_are_those_that_gymnasium_makes():
    seed = int(np.random.SeedSequence((7, 0, 0)).generate_state(1)[0])
    real, ours = gymnasium.make("CartPole-v1"), CartPoles(1, (7,))
    observation, _ = real.reset(seed=seed)
    for step in range(LIMIT):
        assert np.array_equal(ours.observations[0].numpy(), observation)
        action = balance(ours.observations)[0] if step > 5 else 0
        observation, _, terminated, truncated, _ = real.step(action)
        moved = ours.step([action])
        assert np.array_equal(moved.observations[0].numpy(), observation)
        assert moved.fell.tolist() == [terminated]
        assert moved.over.tolist() == [terminated or truncated]
        if terminated or truncated:
            break
    assert step > 20


def test_the_limit_of_gymnasium_cuts_an_episode_off():
    assert gymnasium.spec("CartPole-v1").max_episode_steps == LIMIT
    games = CartPoles(3, (0,))
    ends = [games.step(balance(games.observations)) for _ in range(LIMIT)]
    assert not any(moved.over.any() for moved in ends[:-1])
    assert ends[-1].over.all()
    assert not ends[-1].fell.any()
    assert games.observations.abs().max() <= 0.05


def test_a_fall_starts_an_episode_unlike_the_one_before():
    games = CartPoles(2, (0,))
    first = games.observations
    for _ in range(30):
        moved = games.step([1, 1])
        if moved.over[0]:
            break
    assert moved.fell[0]
    assert moved.observations[0, 2].abs() > 0.2
    assert games.observations[0].abs().max() <= 0.05
    assert not torch.equal(games.observations[0], first[0])
    assert not torch.equal(first[0], first[1])


@given(seed=st.integers(0, 100), before=st.integers(0, 60), actions=st.lists(st.integers(0, 1), max_size=40))
def test_what_was_saved_goes_on_as_if_it_had_not_stopped(seed, before, actions):
    games = CartPoles(2, (seed,))
    for step in range(before):
        games.step([step % 3 % 2, 1])
    file = io.BytesIO()
    torch.save(games.state_dict(), file)
    file.seek(0)
    resumed = CartPoles(2, (seed,))
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for action in actions:
        for one, other in zip(games.step([action, 0]), resumed.step([action, 0]), strict=True):
            assert torch.equal(one, other)
        assert torch.equal(games.observations, resumed.observations)


def test_the_return_counts_the_steps_of_the_first_episodes():
    assert mean_return(balance, 0, "validation") == LIMIT
    lengths = []
    for index in range(EPISODES):
        game = gymnasium.make("CartPole-v1")
        game.reset(seed=int(np.random.SeedSequence((0, 2, index, 0)).generate_state(1)[0]))
        lengths.append(next(step for step in range(1, 100) if game.step(1)[2]))
    assert mean_return(lambda seen: [1] * len(seen), 0, "validation") == np.mean(lengths)


def test_each_split_has_its_own_episodes():
    right = {split: mean_return(lambda seen: [1] * len(seen), 5, split) for split in ("validation", "test")}
    assert right["validation"] != right["test"]


def test_an_unknown_split_is_refused():
    with pytest.raises(ConfigError, match=r"unknown split 'tests'\. Did you mean 'test'"):
        mean_return(balance, 0, "tests")
