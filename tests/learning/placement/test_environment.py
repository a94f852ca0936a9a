"""The placement of trials as a Gymnasium environment."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.utils import seeding
from gymnasium.utils.env_checker import check_env
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env as check_for_stable_baselines

from rota.core.cluster import Cluster, NodeChange
from rota.core.errors import ConfigError, InputError
from rota.core.population.view import Terms
from rota.learning.placement.cases import STEP_S, CaseDistribution
from rota.learning.placement.environment import ID, PlacementEnv
from rota.learning.placement.rollout import Scorer
from rota.policies.allocation.finish import CANDIDATES, INTERVALS, NOTHING
from rota.policies.allocation.learned import FEATURES, Learned, scores, write_agent
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Equal
from rota.simulator.population import PopulationScenario, simulate_trials

SMALL = {"slots": (3, 3), "trials": (4, 4), "intervals": (3, 3)}
MIDDLE = {"slots": (3, 6), "trials": (6, 12), "intervals": (3, 6)}
TWO_BY_TWO = PopulationScenario(({}, {}), Cluster.of_speeds([1.0, 1.0]), Terms(50, 100))
"""A step takes 0.02 s, so an interval takes 1 s and each of the two trials 2 s. So does all, at least."""
QUARTER, ONE, TWO, FOUR = (1 + INTERVALS.tolist().index(length) for length in (0.25, 1.0, 2.0, 4.0))
"""Actions: assignments of so many intervals."""


def play(env: gymnasium.Env, seed: int, choose: Callable[..., int]) -> tuple[list, dict]:
    """All that is seen in an episode, and what is said in the end."""
    observation, info = env.reset(seed=seed)
    seen, terminated = [observation.tolist()], False
    while not terminated:
        action = choose(observation, info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(action)
        assert not truncated
        seen.append((action, reward, observation.tolist()))
    return seen, info


def drawing(seed: int) -> Callable[..., int]:
    """Draws from the actions that there are."""
    random = np.random.default_rng(seed)
    return lambda _, mask: int(random.choice(np.flatnonzero(mask)))


@pytest.mark.parametrize("options", [{}, SMALL, {**SMALL, "reward": "steps"}, {"cases": TWO_BY_TWO}])
def test_gymnasium_finds_nothing_wrong(options):
    check_env(gymnasium.make(ID, **options).unwrapped)


def test_stable_baselines_finds_nothing_wrong():
    check_for_stable_baselines(PlacementEnv())


def test_an_episode_by_hand():
    """Each slot trains a trial, which takes 2 s."""
    env = PlacementEnv(TWO_BY_TWO)
    _, info = env.reset()
    assert (info["slot"], info["now_s"]) == (0, 0.0)
    _, *rest, info = env.step(TWO)
    assert rest == [0.0, False, False]
    assert (info["slot"], info["now_s"]) == (1, 0.0)
    observation, *rest, info = env.step(np.int64(TWO))
    assert rest == [pytest.approx(-1.0), True, False]
    assert not observation.any()
    assert not info.pop("action_mask").any()
    assert info == {
        "makespan_s": pytest.approx(2.0),
        "bound_s": pytest.approx(2.0),
        "ratio": pytest.approx(1),
    }


def test_assigning_all_to_one_slot_waits_twice_as_long():
    env = PlacementEnv(TWO_BY_TWO)
    env.reset()
    _, reward, terminated, _, info = env.step(FOUR)
    assert (reward, terminated) == (pytest.approx(-2.0), True)
    assert info["makespan_s"] == pytest.approx(4.0)


def test_a_reward_for_steps_is_for_the_time_until_the_next_decision():
    """Slot 0 is free again after 1 s, of the 2 s that are the least; the second half takes 1 s, too."""
    env = PlacementEnv(TWO_BY_TWO, reward="steps")
    env.reset()
    assert env.step(ONE)[1] == 0.0
    _, reward, _, _, info = env.step(TWO)
    assert reward == pytest.approx(-0.5)
    assert (info["slot"], info["now_s"]) == (0, pytest.approx(1.0))
    assert env.step(ONE)[1:3] == (pytest.approx(-0.5), True)


def test_time_before_the_first_decision_counts():
    """The only slot joins after 3 s; two trials take it 4 s, which is the least."""
    late = Cluster.of_slots(Cluster.of_speeds([1.0]).all_slots, changes=(NodeChange(3.0, 0, joins=True),))
    for reward in ("makespan", "steps"):
        env = PlacementEnv(replace(TWO_BY_TWO, cluster=late), reward=reward)
        assert env.reset()[1]["now_s"] == 3.0
        assert env.step(FOUR)[1:3] == (pytest.approx(-7 / 4), True)


def test_both_rewards_have_the_same_sum():
    sums = {}
    for reward in ("makespan", "steps"):
        env = PlacementEnv(reward=reward, **MIDDLE)
        episodes = [play(env, seed, drawing(seed)) for seed in range(3)]
        sums[reward] = [sum(step[1] for step in seen[1:]) for seen, _ in episodes]
        assert sums[reward] == pytest.approx([-info["ratio"] for _, info in episodes])
        assert sum(step[1] != 0.0 for step in episodes[0][0][1:]) > (1 if reward == "steps" else 0)
    assert sums["steps"] == pytest.approx(sums["makespan"])


@pytest.mark.parametrize("seed", range(2))
def test_what_an_agent_does_takes_as_long_as_in_a_simulation(seed, tmp_path):
    weights = Scorer(hidden=8, seed=seed).weights
    write_agent(tmp_path, weights, {})
    case = CaseDistribution().draw(seeding.np_random(seed)[0])
    done = simulate_trials(case.scene, Equal(STEP_S), PopulationPolicy(Learned(tmp_path)))

    def choose(observation, mask) -> int:
        return int(np.argmax(scores(observation.reshape(CANDIDATES, FEATURES), mask.astype(bool), weights)))

    _, info = play(PlacementEnv(masked="refuse"), seed, choose)
    assert (info["makespan_s"], info["bound_s"]) == (done.makespan_s, case.bound_s)
    assert info["ratio"] == done.makespan_s / case.bound_s >= 1.0 - 5 * case.scene.noise.noise


def test_the_same_seed_gives_the_same_episodes():
    one, other = PlacementEnv(**MIDDLE), PlacementEnv(CaseDistribution(**MIDDLE))
    assert [play(one, seed, drawing(7))[0] for seed in range(3)] == [
        play(other, seed, drawing(7))[0] for seed in range(3)
    ]


def test_episodes_go_on_with_other_cases_where_no_seed_is_given():
    env = PlacementEnv(**SMALL)
    first = env.reset(seed=0)[0].tolist()
    assert env.reset()[0].tolist() != first
    assert env.reset(seed=0)[0].tolist() == first


def test_a_scene_is_the_same_each_time_noise_included():
    env = PlacementEnv(CaseDistribution(**SMALL).draw(np.random.default_rng(5)).scene)
    assert play(env, 0, drawing(0))[0] == play(env, 1, drawing(0))[0]


def test_ranges_are_those_of_the_cases():
    given, by_name = PlacementEnv(CaseDistribution(**SMALL)), PlacementEnv(**SMALL)
    for seed in range(3):
        assert given.reset(seed=seed)[0].tolist() == by_name.reset(seed=seed)[0].tolist()


def test_masked_actions_are_not_seen():
    env = PlacementEnv()
    random = drawing(0)
    observation, info = env.reset(seed=0)
    for _ in range(20):
        mask = info["action_mask"]
        assert mask.dtype == np.int8
        assert observation.reshape(CANDIDATES, FEATURES).any(1).tolist() == mask.astype(bool).tolist()
        assert env.action_masks().tolist() == mask.astype(bool).tolist()
        observation, *_, info = env.step(random(observation, mask))


def test_a_slot_can_be_left_idle_if_another_one_works():
    env = PlacementEnv(TWO_BY_TWO)
    assert not env.reset()[1]["action_mask"][NOTHING]
    assert env.step(ONE)[4]["action_mask"][NOTHING]
    *_, info = env.step(NOTHING)
    assert (info["slot"], info["now_s"]) == (0, pytest.approx(1.0))


def test_a_masked_action_is_refused_and_nothing_has_happened():
    env = PlacementEnv(TWO_BY_TWO, masked="refuse")
    env.reset()
    with pytest.raises(InvalidAction, match=r"action 0: not among the \d+ of \d+ that slot 0 has now"):
        env.step(NOTHING)
    env.step(TWO)
    assert env.step(TWO)[1] == pytest.approx(-1.0)


def test_a_masked_action_stands_for_the_nearest():
    """To leave all slots idle is to assign one a quarter of an interval: 12 of 50 steps of 0.02 s."""
    env = PlacementEnv(TWO_BY_TWO)
    env.reset()
    env.step(NOTHING)
    *_, info = env.step(TWO)
    assert (info["slot"], info["now_s"]) == (0, pytest.approx(0.24))


@pytest.mark.parametrize("action", [-1, CANDIDATES, 1.5])
@pytest.mark.parametrize("masked", ["refuse", "nearest"])
def test_what_is_not_in_the_space_is_refused(action, masked):
    env = PlacementEnv(TWO_BY_TWO, masked=masked)
    env.reset()
    with pytest.raises(InvalidAction, match="choose one that"):
        env.step(action)


def test_there_is_no_step_before_an_episode_begins_or_after_it_ends():
    env = PlacementEnv(TWO_BY_TWO)
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(FOUR)
    env.reset()
    env.step(FOUR)
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(FOUR)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": "makespam"}, "unknown reward 'makespam'. Did you mean 'makespan'?"),
        ({"masked": "ignore"}, "unknown masked 'ignore'"),
        ({"slot": (3, 3)}, "unknown argument 'slot'. Did you mean 'slots'?"),
        (
            {"cases": CaseDistribution(), "slots": (3, 3)},
            "cases and slots are both given; leave one of them out",
        ),
        ({"cases": TWO_BY_TWO, "noise": 0.1}, "cases and noise are both given; leave one of them out"),
        (
            {"cases": "cases.toml"},
            "cases: 'cases.toml' is neither a CaseDistribution nor a PopulationScenario",
        ),
    ],
)
def test_bad_arguments_are_errors(options, message):
    with pytest.raises(InputError) as error:
        PlacementEnv(**options)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slots": (3, 2)}, r"slots is \[3, 2\]; give the least and the most"),
        ({"slots": 8}, "slots is 8; give the least and the most"),
        ({"trials": (3, 4, 5)}, r"trials is \[3, 4, 5\]; give the least and the most"),
        ({"intervals": (1, 2.5)}, r"intervals is \[1, 2.5\]; give the least and the most"),
        ({"goal": "Target"}, "unknown goal 'Target'. Did you mean 'target'?"),
        ({"dispatch": math.inf}, "dispatch is inf; give a number of 0 or more"),
        ({"dispatch": "much"}, "dispatch is 'much'; give a number of 0 or more"),
        ({"spread": math.nan}, "spread is nan; give a number of 1 or more"),
        ({"noise": 20}, "noise is 20; give a number of 0 or more, below 10"),
    ],
)
def test_bad_ranges_are_errors(options, message):
    with pytest.raises(ConfigError, match=message):
        PlacementEnv(**options)


def test_an_option_of_reset_is_an_error():
    with pytest.raises(InputError, match="unknown option 'scene'; reset takes a seed, and no options"):
        PlacementEnv().reset(options={"scene": TWO_BY_TWO})


def test_gymnasium_finds_it_by_its_module_and_importing_it_again_is_no_matter():
    code = """if True:
        import gymnasium, importlib, json, sys
        env = gymnasium.make("rota.learning.placement.environment:rota/Place-v0", slots=[1, 1], trials=[1, 1])
        observation, info = env.reset(seed=0)
        terminated = False
        while not terminated:
            observation, reward, terminated, truncated, info = env.step(1)
        print(json.dumps([env.spec.id, reward == -info["ratio"], sorted(info)]))
        importlib.reload(sys.modules["rota.learning.placement.environment"])
    """
    printed = subprocess.check_output([sys.executable, "-W", "error::UserWarning", "-c", code], text=True)
    assert json.loads(printed) == [ID, True, ["action_mask", "bound_s", "makespan_s", "ratio"]]


def test_environments_run_side_by_side():
    envs = gymnasium.make_vec(ID, num_envs=3, vectorization_mode="sync", cases=TWO_BY_TWO)
    _, info = envs.reset(seed=0)
    assert info["action_mask"].shape == (3, CANDIDATES)
    envs.step(np.array([TWO, TWO, QUARTER]))
    _, rewards, terminated, _, info = envs.step(np.array([TWO, TWO, TWO]))
    assert terminated.tolist() == [True, True, False]
    assert rewards == pytest.approx([-1.0, -1.0, 0.0])
    assert info["ratio"][:2] == pytest.approx([1.0, 1.0])


def test_stable_baselines_learns_to_be_done_sooner_on_slots_that_it_has_not_seen():
    """At random, most time is lost by assigning much to slow slots."""
    model = PPO(
        "MlpPolicy", PlacementEnv(**SMALL, reward="steps"), n_steps=256, batch_size=64, learning_rate=3e-3,
        ent_coef=0.01, gamma=1.0, seed=0, device="cpu",
    )  # fmt: skip
    model.learn(8 * 256)
    learned = mean_ratio(lambda observation, _: int(model.predict(observation, deterministic=True)[0]))
    assert 1.0 < learned < 0.8 * mean_ratio(drawing(0))


def mean_ratio(choose: Callable[..., int]) -> float:
    """Over cases other than those that are drawn while learning."""
    env = PlacementEnv(**SMALL)
    return float(np.mean([play(env, seed, choose)[1]["ratio"] for seed in range(1000, 1040)]))
