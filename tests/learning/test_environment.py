"""The adaptation problem as a Gymnasium environment."""

import json
import subprocess
import sys
from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.utils.env_checker import check_env
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env as check_for_stable_baselines

from rota.core.errors import InputError
from rota.learning.environment import ID, AdaptationEnv
from rota.learning.problem import problem_of
from rota.recordings.tree import write_tree

TWO = {"actions": ("deepen 0", "nothing"), "scenario": "late", "start_s": 340.0}


@pytest.fixture
def make(make_tree) -> Callable[..., AdaptationEnv]:
    """Gives a function that makes an environment of trees that differ in this."""

    def make_environment(*trees: dict, **options) -> AdaptationEnv:
        return AdaptationEnv([problem_of(make_tree(**changes)) for changes in trees or ({},)], **options)

    return make_environment


@pytest.fixture
def recorded(make_tree, tmp_path) -> str:
    """A folder with two trees: four actions in one, two in the other."""
    write_tree(tmp_path / "early", make_tree())
    write_tree(tmp_path / "late", make_tree(**TWO))
    return str(tmp_path)


def episode(env: gymnasium.Env, seed: int) -> list:
    """All that is seen when each action is drawn from those that there are."""
    observation, info = env.reset(seed=seed)
    env.action_space.seed(seed)
    seen, terminated = [info["tree"], *observation.tolist()], False
    while not terminated:
        action = env.action_space.sample(info["action_mask"])
        observation, reward, terminated, _, info = env.step(action)
        seen += [int(action), reward, *observation.tolist()]
    return [*seen, info["sequence"]]


def test_gymnasium_finds_nothing_wrong(recorded):
    check_env(gymnasium.make(ID, recordings=[f"{recorded}/early"]).unwrapped)


def test_gymnasium_finds_nothing_wrong_where_trees_have_different_numbers_of_actions(recorded):
    check_env(gymnasium.make(ID, recordings=recorded, masked="nothing").unwrapped)


def test_an_episode_by_hand(make):
    """Actions 0, 3, 0 lead to 0.4. The mean is 0.2 + 0.1·¾; only (0, 0, 0) is better, with 0.5."""
    env = make()
    assert env.reset()[1]["tree"] == "convnet2/early seed 0"
    assert env.step(0)[1:4] == (0.0, False, False)
    assert env.step(3)[1:4] == (0.0, False, False)
    observation, reward, terminated, truncated, info = env.step(np.int64(0))
    assert (reward, terminated, truncated) == (pytest.approx(0.4), True, False)
    assert not observation.any()
    assert info["sequence"] == (0, 3, 0)
    assert info["accuracy"] == pytest.approx(0.4)
    assert info["rank"] == 2
    assert info["headroom"] == pytest.approx((0.4 - 0.275) / (0.5 - 0.275))


def test_what_is_seen_is_where_the_documentation_says(make):
    """The first decision is due with ¾ of the budget left; ConvNet2 has three layers that mix channels."""
    env = make({}, {**TWO, "start_s": 100.0})
    observation, _ = env.reset(options={"tree": "convnet2/late"})
    assert observation.shape == (8 + 2 + 4 * 12,)
    assert observation[:2] == pytest.approx([2 * 0.75 - 1, np.sin(np.pi * 0.75 / 2)])
    assert observation[8:10] == pytest.approx([0.3, 0.0])
    assert observation[10:14].tolist() == [1, 0, 0, 0]  # deepen
    assert observation[22:34].tolist() == [0, 0, 0, 1] + 8 * [0]  # nothing
    assert not observation[34:].any()  # there are only two actions
    after, *_ = env.step(0)
    assert after[0] == pytest.approx(2 * 0.5 - 1)
    assert after[8:10] == pytest.approx([0.4, 1 / 3])


def test_the_same_seed_gives_the_same_episodes(make):
    one, other = make({}, TWO), make({}, TWO)
    assert [episode(one, seed) for seed in range(5)] == [episode(other, seed) for seed in range(5)]
    assert len({episode(one, seed)[0] for seed in range(20)}) == 2


def test_episodes_go_on_at_random_where_no_seed_is_given(make):
    env = make({}, TWO)
    env.reset(seed=0)
    assert len({env.reset()[1]["tree"] for _ in range(20)}) == 2


def test_masks_say_which_actions_a_tree_has(make):
    env = make({}, TWO)
    for name, mask in (("convnet2/early", [1, 1, 1, 1]), ("convnet2/late", [1, 1, 0, 0])):
        _, info = env.reset(options={"tree": name})
        for _ in range(2):
            assert info["action_mask"].tolist() == mask
            assert info["action_mask"].dtype == np.int8
            assert env.action_masks().tolist() == [bool(each) for each in mask]
            *_, info = env.step(0)
        *_, info = env.step(0)
        assert info["action_mask"].tolist() == [0, 0, 0, 0]


def test_a_masked_action_is_refused_and_nothing_has_happened(make):
    env = make({}, TWO)
    env.reset(options={"tree": "convnet2/late"})
    with pytest.raises(InvalidAction, match=r"action 2: convnet2/late seed 0 has 2, counted from 0"):
        env.step(2)
    env.step(0), env.step(0)
    assert env.step(1)[4]["sequence"] == (0, 0, 1)


def test_a_masked_action_can_be_to_do_nothing(make):
    env = make({}, TWO, masked="nothing")
    env.reset(options={"tree": "convnet2/late"})
    env.step(0), env.step(3)
    assert env.step(2)[4]["sequence"] == (0, 1, 1)


@pytest.mark.parametrize("action", [-1, 4, 1.5])
@pytest.mark.parametrize("masked", ["refuse", "nothing"])
def test_what_is_not_in_the_space_is_refused(make, action, masked):
    env = make(masked=masked)
    env.reset()
    with pytest.raises(InvalidAction, match="choose one that"):
        env.step(action)


def test_there_is_no_step_before_an_episode_begins_or_after_it_ends(make):
    env = make({"decisions": 1})
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(0)
    env.reset()
    env.step(0)
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(0)


def test_a_standard_reward_is_in_deviations_from_the_mean(make):
    """The number of zeros in three draws of four is binomial: its deviation is √(3·¼·¾) = ¾."""
    env = make(reward="standard")
    env.reset()
    env.step(0), env.step(0)
    assert env.step(0)[1] == pytest.approx((3 - 0.75) / 0.75)


def test_where_all_sequences_are_equal_there_is_no_headroom_and_no_reward(make):
    env = make({"accuracy": lambda _: 0.3}, reward="standard")
    env.reset()
    env.step(0), env.step(0)
    _, reward, _, _, info = env.step(0)
    assert (reward, info["rank"], info["headroom"]) == (pytest.approx(0.0), 1, 0.0)


def test_the_same_model_on_other_data_is_told_apart(make):
    env = make({}, {"data": "digits"})
    env.reset(seed=0)
    by_name = {env.reset(options={"tree": "convnet2/early"})[1]["tree"] for _ in range(20)}
    assert by_name == {"convnet2-cifar10/early seed 0", "convnet2-digits/early seed 0"}
    by_data = {env.reset(options={"tree": "convnet2-digits/early"})[1]["tree"] for _ in range(20)}
    assert by_data == {"convnet2-digits/early seed 0"}


def test_one_of_several_seeds_is_chosen_by_its_number(make):
    env = make({}, {"seed": 1}, TWO)
    env.reset(seed=0)
    by_name = {env.reset(options={"tree": "convnet2/early"})[1]["tree"] for _ in range(20)}
    assert by_name == {"convnet2/early seed 0", "convnet2/early seed 1"}
    by_label = {env.reset(options={"tree": "convnet2/early seed 1"})[1]["tree"] for _ in range(20)}
    assert by_label == {"convnet2/early seed 1"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tree": "convnet2/eraly"}, "unknown tree 'convnet2/eraly'. Did you mean 'convnet2/early'?"),
        ({"trees": "convnet2/early"}, "unknown option 'trees'. Did you mean 'tree'?"),
    ],
)
def test_an_unknown_option_is_an_error(make, options, message):
    with pytest.raises(InputError) as error:
        make({}, TWO).reset(options=options)
    assert message in str(error.value)


def test_bad_arguments_are_errors(make, tmp_path):
    with pytest.raises(InputError, match=r"unknown reward 'acuracy'\. Did you mean 'accuracy'\?"):
        make(reward="acuracy")
    with pytest.raises(InputError, match="unknown masked 'ignore'"):
        make(masked="ignore")
    with pytest.raises(InputError, match="recordings: none"):
        AdaptationEnv([])
    with pytest.raises(InputError, match="no tree recording in it"):
        AdaptationEnv([tmp_path])


def test_gymnasium_finds_it_by_its_module_and_importing_it_again_is_no_matter(recorded):
    code = f"""if True:
        import gymnasium, importlib, json, sys
        env = gymnasium.make("rota.learning.environment:rota/Adapt-v0", recordings=[{recorded!r}])
        observation, info = env.reset(seed=0, options={{"tree": "convnet2/early"}})
        for action in (0, 0, 0):
            observation, reward, terminated, truncated, info = env.step(action)
        print(json.dumps([env.spec.id, int(env.action_space.n), reward, terminated, info["rank"]]))
        importlib.reload(sys.modules["rota.learning.environment"])
    """
    printed = subprocess.check_output([sys.executable, "-W", "error::UserWarning", "-c", code], text=True)
    assert json.loads(printed) == [ID, 4, pytest.approx(0.5), True, 1]


def test_environments_run_side_by_side(recorded):
    envs = gymnasium.make_vec(ID, num_envs=3, vectorization_mode="sync", recordings=[recorded])
    _, info = envs.reset(seed=0, options={"tree": "convnet2/late"})
    assert info["action_mask"].tolist() == [[1, 1, 0, 0]] * 3
    for actions in ([0, 1, 0], [0, 1, 1]):
        envs.step(np.array(actions))
    _, rewards, terminated, _, info = envs.step(np.array([0, 1, 0]))
    assert terminated.all()
    assert rewards == pytest.approx([0.5, 0.2, 0.4])
    assert list(info["sequence"]) == [(0, 0, 0), (1, 1, 1), (0, 1, 0)]


def test_stable_baselines_learns_to_look_at_the_time(make):
    """Early on action 0 is good, late action 3 is; each time it is taken is worth 0.1.

    So drawing at random leads to 0.275 on average, the same sequence in both trees to 0.35 at most.
    """
    late = {"scenario": "late", "start_s": 340.0, "accuracy": lambda sequence: 0.2 + 0.1 * sequence.count(3)}
    env = make({}, late)
    check_for_stable_baselines(env)
    model = PPO(
        "MlpPolicy", env, n_steps=192, batch_size=64, learning_rate=3e-3, ent_coef=0.01, seed=0, device="cpu"
    )
    model.learn(4 * 192)
    assert (reached(model, env, "convnet2/early") + reached(model, env, "convnet2/late")) / 2 > 0.4


def reached(model: PPO, env: AdaptationEnv, tree: str) -> float:
    """The accuracy that a model's likeliest actions lead to."""
    observation, info = env.reset(options={"tree": tree})
    while "accuracy" not in info:
        action, _ = model.predict(observation, deterministic=True)
        observation, *_, info = env.step(action)
    return info["accuracy"]
