"""The schedule of jobs as an environment, alone and as a batch."""

from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.env_checker import check_env as check_for_stable_baselines

import rota
from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.errors import InputError, Stuck
from rota.core.failures import Failures
from rota.core.timeline import EventKind
from rota.learning.scheduling.environment import ID, SchedulingEnv, SchedulingVectorEnv
from rota.learning.scheduling.kernels import CLUSTER_FEATURES, JOB_FEATURES
from rota.policies.cluster.elastic import Elastic
from rota.policies.cluster.srtf import Srtf
from rota.results.metrics import measure
from rota.simulator.jobs import simulate
from rota.workload.jobs import Workload, workload
from rota.workload.profiles import MODELS

CHANGING = Cluster(
    nodes=(Node(8, 0, "v100"), Node(4, 0, "k80"), Node(4, 1, "k80"), Node(8, 1, "v100")),
    cross_node=1.5,
    cross_switch=3.0,
    speeds={"k80": {"default": 0.25, "bert": 0.1}},
    changes=(NodeChange(50.0, 1, False), NodeChange(100.0, 0, False), NodeChange(900.0, 0, True)),
)
ONE_SLOT = Cluster.uniform(1, 1)
LARGE = Cluster.uniform(2, 8)
OBSERVED = {name: number for number, name in enumerate(JOB_FEATURES)}
OF_CLUSTER = {name: number for number, name in enumerate(CLUSTER_FEATURES)}


def jobs_of(*each: tuple[float, int, float], startup_s: float = 0.0) -> Workload:
    """Jobs of a model without a profile: submit time, gang size, seconds."""
    submit_s, gpus, seconds = zip(*each, strict=True)
    return workload(
        "by hand", [f"j{number}" for number in range(len(each))], submit_s, gpus, ["m"] * len(each),
        duration_s=seconds, iterations=seconds, startup_s=[startup_s] * len(each),
    )  # fmt: skip


TWO = jobs_of((0.0, 1, 10.0), (2.0, 1, 4.0))
"""A job of 10 s, and after 2 s one of 4 s; each needs the only slot."""


def random_jobs(seed: int, jobs: int = 40) -> Workload:
    """Jobs of which many are alike, so that scores and times are often equal."""
    draw = np.random.default_rng(seed)
    return workload(
        f"random {seed}", [f"j{number}" for number in range(jobs)],
        np.sort(draw.choice([0.0, 10.0, 100.0, 333.0, 2000.5, 5000.0], jobs)),
        draw.choice([1, 1, 2, 3, 4, 8], jobs), draw.choice(MODELS, jobs).tolist(),
        duration_s=draw.choice([1.0, 60.0, 61.5, 900.0, 3600.0], jobs), priority=draw.integers(0, 2, jobs),
    )  # fmt: skip


def scores_of(env: SchedulingEnv, *wanted: float) -> np.ndarray:
    """Scores for the first positions; the others have no jobs, so theirs count for nothing."""
    scores = np.full(env.action_space.shape, np.nan)
    scores[: len(wanted)] = wanted
    return scores


def drawn(seed: int) -> Callable[[SchedulingEnv], np.ndarray]:
    """Scores drawn at random."""
    rng = np.random.default_rng(seed)
    return lambda env: rng.normal(size=env.action_space.shape)


def shortest_first(env: SchedulingEnv) -> np.ndarray:
    """The key of srtf, negated."""
    view = env.view
    return scores_of(env, *-view.remaining_s[view.order])


def play(env: SchedulingEnv, choose: Callable[[SchedulingEnv], np.ndarray], **reset) -> tuple[list, dict]:
    """The rewards of an episode, and what is said in the end."""
    env.reset(**reset)
    rewards, over = [], False
    while not over:
        _, reward, over, truncated, info = env.step(choose(env))
        assert not truncated
        rewards.append(reward)
    return rewards, info


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"durations": "none", "reward": "fairness", "most_jobs": 3},
        {"jobs": lambda seed: random_jobs(seed), "cluster": CHANGING, "reward": "slowdown"},
        {"jobs": random_jobs(1, 60), "cluster": CHANGING, "episode_jobs": 20, "decide_every_s": 60.0},
    ],
)
def test_gymnasium_finds_nothing_wrong(options):
    check_env(gymnasium.make(ID, **options).unwrapped)


def test_stable_baselines_only_finds_that_there_is_a_table_of_jobs():
    with pytest.warns(UserWarning, match="observation jobs has an unconventional shape") as found:
        check_for_stable_baselines(SchedulingEnv())
    assert len(found) == 1


@pytest.mark.parametrize(
    ("reward", "expected"),
    [
        ("jct", [-2.0, -8.0, -8.0]),
        ("makespan", [-2.0, -4.0, -8.0]),
        # The long job's slowdown grows by 1/10 a second, the short one's by 1/5, but it is at least 1.
        ("slowdown", [-0.2, -1.4, -0.8]),
        # 18 slot-seconds are asked for in the 14 s of the long job, 8 in the 4 s of the short one.
        ("fairness", [0.0, -4 / (4 * 2), -14 / (10 * 18 / 14)]),
    ],
)
def test_an_episode_by_hand(reward, expected):
    """The short job preempts the long one after 2 s and ends after 6 s, the long one after 14 s."""
    env = SchedulingEnv(TWO, ONE_SLOT, reward=reward, slowdown_bound_s=5.0)
    _, info = env.reset()
    assert (info["now_s"], info["active"], info["action_mask"].sum()) == (0.0, 1, 1)
    _, *first, info = env.step(scores_of(env, 0.0))
    assert (info["now_s"], info["active"], info["action_mask"][:3].tolist()) == (2.0, 2, [1, 1, 0])
    _, *second, info = env.step(scores_of(env, 1.0, 2.0))
    assert info["now_s"] == 6.0
    observation, *third, info = env.step(scores_of(env, 0.0))
    assert [step[0] for step in (first, second, third)] == pytest.approx(expected)
    assert [step[1:] for step in (first, second, third)] == [[False, False], [False, False], [True, False]]
    assert not observation["jobs"].any()
    assert not observation["cluster"].any()
    assert not info.pop("action_mask").any()
    assert info == {
        "now_s": 14.0, "active": 0, "world": 0, "failed": 0.0, "avg_jct_s": 9.0,
        "slowdown_mean": pytest.approx(1.2), "makespan_s": 14.0,
        "fairness_mean": pytest.approx((0.5 + 196 / 180) / 2), "queueing_s": 2.0, "utilisation": 1.0,
    }  # fmt: skip


def test_what_is_observed_by_hand():
    """After 6 s: a job of two GPUs has run for 6 of its 20 s, one of 3 GPUs has waited since 4 s."""
    env = SchedulingEnv(jobs_of((0.0, 2, 20.0), (1.0, 1, 5.0), (4.0, 3, 7.0)), Cluster.uniform(1, 4))
    env.reset()
    env.step(scores_of(env, 0.0))
    env.step(scores_of(env, 1.0, 0.0))
    observation, _, _, _, info = env.step(scores_of(env, 2.0, 1.0, 0.0))
    assert (info["now_s"], info["active"]) == (6.0, 2)
    jobs, cluster = observation["jobs"], observation["cluster"]
    expected = {
        "present": (1.0, 1.0), "running": (1.0, 0.0), "gang": (0.5, 0.75), "gpus": np.log([3.0, 4.0]),
        "age": np.log([7.0, 3.0]), "waited": np.log([1.0, 3.0]), "attained": np.log([7.0, 1.0]),
        "remaining": np.log([15.0, 8.0]), "solo": np.log([21.0, 8.0]), "startup": (0.0, 0.0),
        "priority": (0.0, 0.0), "fits": (0.0, 0.0), "speed": (1.0, 0.0),
        "group_mean": (0.0, 0.0), "group_count": (0.0, 0.0),
    }  # fmt: skip
    for name in JOB_FEATURES:
        assert jobs[:2, OBSERVED[name]] == pytest.approx(np.array(expected[name]), abs=1e-6), name
    assert jobs[:2, len(JOB_FEATURES) :].tolist() == [[1.0], [1.0]]
    assert not jobs[2:].any()
    expected = {
        "active": np.log(3.0), "running": np.log(2.0), "unseen": 0.0, "idle": 0.5, "up": 1.0,
        "pressure": np.log(1 + 5 / 4), "since": np.log(3.0), "ended_mean": np.log(6.0),
    }  # fmt: skip
    for name in CLUSTER_FEATURES:
        assert cluster[OF_CLUSTER[name]] == pytest.approx(expected[name], abs=1e-6), name
    assert cluster[len(CLUSTER_FEATURES) :].tolist() == [0.5]


def test_a_job_is_compared_with_those_of_its_group_that_have_ended():
    """Of two jobs with one GPU, one ends after 3 s; that of the other size has no group yet."""
    env = SchedulingEnv(jobs_of((0.0, 1, 3.0), (0.0, 1, 9.0), (0.0, 2, 9.0)), Cluster.uniform(1, 4))
    env.reset()
    observation, *_ = env.step(scores_of(env, 3.0, 2.0, 1.0))
    columns = [OBSERVED["group_mean"], OBSERVED["group_count"]]
    assert observation["jobs"][:2, columns] == pytest.approx(
        np.array([[np.log(4.0), np.log(2.0)], [0.0, 0.0]])
    )


def test_groups_are_those_of_the_trace():
    """Two users, the same model and size: what the job of one took says nothing about that of the other."""
    jobs = workload(
        "users", ["a", "b", "c"], [0.0, 0.0, 0.0], [1, 1, 1], ["bert"] * 3, duration_s=[3.0, 9.0, 9.0],
        group=["ann", "bob", "ann"],
    )  # fmt: skip
    env = SchedulingEnv(jobs, Cluster.uniform(1, 4))
    env.reset()
    observation, *_ = env.step(scores_of(env, 3.0, 2.0, 1.0))
    columns = [OBSERVED["group_mean"], OBSERVED["group_count"]]
    solo_s = jobs.solo_s[0]
    assert observation["jobs"][:2, columns] == pytest.approx(
        np.array([[0.0, 0.0], [np.log(1.0 + solo_s), np.log(2.0)]])
    )


def test_a_resizable_job_grows_by_option():
    """20 s on 2 GPUs, on 4 half as long, as nothing of it is serial; it begins with one and grows."""
    jobs = jobs_of((0.0, 2, 20.0)).elastic(serial=0.0)
    ends = []
    for resizes in (False, True):
        env = SchedulingEnv(jobs, Cluster.uniform(1, 4), resizes=resizes)
        observation, _ = env.reset()
        assert observation["jobs"][0, OBSERVED["gpus"]] == pytest.approx(np.log(2.0 if resizes else 3.0))
        *_, info = env.step(scores_of(env, 0.0))
        ends.append(info["now_s"])
    assert ends == pytest.approx([20.0, 10.0])


def test_resizable_jobs_ranked_by_what_is_left_are_those_of_elastic():
    jobs = rota.synthetic_trace(jobs=60, gpus=8, seed=3, load=1.2).elastic()
    cluster = Cluster.uniform(2, 4)
    env = SchedulingEnv(jobs, cluster, resizes=True, keeps_timeline=True, most_jobs=60)
    play(env, lambda env: scores_of(env, *-env.view.remaining_s[env.view.order]))
    expected = simulate(jobs, cluster, Elastic(), compiled=False).timeline
    assert (expected.events["kind"] == EventKind.RESIZED).any()
    assert np.array_equal(env.timeline.events, expected.events)


def test_kinds_have_their_speeds_and_idle_shares():
    """A job on the fastest of two kinds; the other may only use the slow one, which has four slots."""
    jobs = workload(
        "kinds", ["a", "b"], [0.0, 5.0], [2, 2], ["bert", "bert"], duration_s=[1e3, 1e3],
        kinds=[(), ("k80",)],
    )  # fmt: skip
    cluster = Cluster((Node(2, 0, "v100"), Node(4, 0, "k80")), speeds={"k80": {"default": 0.25}})
    env = SchedulingEnv(jobs, cluster)
    env.reset()
    observation, *_ = env.step(scores_of(env, 0.0))
    assert observation["jobs"][:2, len(JOB_FEATURES) :].tolist() == [[1.0, 0.25], [0.0, 0.25]]
    assert observation["cluster"][len(CLUSTER_FEATURES) :].tolist() == [0.0, 1.0]
    assert observation["jobs"][:2, OBSERVED["fits"]].tolist() == [0.0, 1.0]


def test_durations_can_be_hidden():
    known, hidden = (SchedulingEnv(random_jobs(3), LARGE, durations=each) for each in ("exact", "none"))
    seen, unseen = (env.reset(seed=0)[0]["jobs"] for env in (known, hidden))
    secret = [OBSERVED["remaining"], OBSERVED["solo"]]
    assert (seen[0, secret] > 0.0).all()
    assert not unseen[:, secret].any()
    seen[:, secret] = 0.0
    assert np.array_equal(seen, unseen)


def test_jobs_beyond_the_positions_come_last_and_are_shown_when_others_have_ended():
    env = SchedulingEnv(jobs_of(*[(0.0, 1, float(seconds)) for seconds in (3, 2, 1)]), ONE_SLOT, most_jobs=2)
    observation, info = env.reset()
    assert (info["active"], info["action_mask"].tolist()) == (3, [1, 1])
    assert observation["cluster"][OF_CLUSTER["unseen"]] == pytest.approx(np.log(2.0))
    _, _, _, _, info = env.step(np.array([0.0, 1.0]))
    assert info["now_s"] == 2.0
    observation, _, _, _, info = env.step(np.array([0.0, 1.0]))
    assert info["now_s"] == 3.0  # the unseen one was shown, and preferred
    assert info["action_mask"].tolist() == [1, 0]


def test_a_decision_can_be_due_while_jobs_wait():
    env = SchedulingEnv(TWO, ONE_SLOT, decide_every_s=1.5)
    env.reset()
    times = [env.step(scores_of(env, *scores))[-1]["now_s"] for scores in [(0.0,), (1.0, 0.0), (1.0, 0.0)]]
    assert times == [2.0, 3.5, 5.0]


OFTEN = Failures(per_gpu_hour=0.3, node_mtbf_s=20_000.0, node_repair_s=500.0, attempts=4, seed=7)
"""Failures of which a few in each run are for good."""


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    cluster=st.sampled_from([LARGE, CHANGING]),
    jobs=st.integers(1, 40),
    failures=st.sampled_from([None, OFTEN]),
)
def test_with_the_key_of_srtf_as_scores_all_is_as_srtf_does_it(seed, cluster, jobs, failures):
    given_jobs = random_jobs(seed, jobs)
    env = SchedulingEnv(given_jobs, cluster, keeps_timeline=True, failures=failures)
    play(env, shortest_first)
    found, expected = env.timeline, simulate(given_jobs, cluster, Srtf(), failures=failures).timeline
    assert np.array_equal(found.events, expected.events)
    assert np.array_equal(found.slots, expected.slots)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    cluster=st.sampled_from([LARGE, CHANGING]),
    start_s=st.sampled_from([0.0, 77.0]),
    failures=st.sampled_from([None, OFTEN]),
)
def test_the_sums_of_rewards_are_the_metrics_of_the_timeline(seed, cluster, start_s, failures):
    jobs = workload_from(random_jobs(seed), start_s)
    for reward in ("jct", "makespan", "fairness", "slowdown"):
        env = SchedulingEnv(jobs, cluster, reward=reward, failures=failures, keeps_timeline=True)
        rewards, info = play(env, drawn(seed))
        run = measure(env.timeline, jobs, cluster)
        finished = run.times.finished
        slowdowns = np.maximum(run.times.jct_s / np.maximum(jobs.solo_s, 10.0), 1.0)
        total = {
            "jct": run.times.jct_s.sum(), "makespan": run.metrics.makespan_s,
            "fairness": run.times.fairness[finished].sum(), "slowdown": slowdowns.sum(),
        }[reward]  # fmt: skip
        if reward != "slowdown" or finished.all():
            assert sum(rewards) == pytest.approx(-total)
        for name in ("failed", "avg_jct_s", "makespan_s", "fairness_mean", "queueing_s", "utilisation"):
            assert info[name] == pytest.approx(getattr(run.metrics, name)), name
        assert info["slowdown_mean"] == pytest.approx(slowdowns[finished].mean())


def workload_from(jobs: Workload, start_s: float) -> Workload:
    """The same jobs, submitted later."""
    frame = jobs.to_frame()
    return workload(
        jobs.name, list(jobs.ids), jobs.submit_s + start_s, jobs.gpus, frame["model"].tolist(),
        duration_s=jobs.duration_s, iterations=jobs.iterations,
    )  # fmt: skip


def test_the_same_seed_gives_the_same_episode_and_another_one_another():
    def seen(seed: int) -> list:
        env = SchedulingEnv(lambda number: random_jobs(number % 1000), CHANGING)
        env.reset(seed=seed)
        rewards, info = play(env, drawn(1))
        return [rewards, info["world"], info["avg_jct_s"]]

    assert seen(5) == seen(5) != seen(6)


def test_the_world_can_be_chosen():
    worlds = [(random_jobs(1), LARGE), (random_jobs(2), Cluster.uniform(1, 8)), (random_jobs(3), LARGE)]
    env = SchedulingEnv(worlds)
    for number in (2, 0, 1, 2):
        assert env.reset(options={"world": number})[1]["world"] == number
        assert env.world == worlds[number]
    assert {env.reset(seed=seed)[1]["world"] for seed in range(20)} == {0, 1, 2}


def test_an_engine_that_is_used_again_is_as_new():
    env = SchedulingEnv([random_jobs(1, 90), random_jobs(2)], CHANGING)
    first = [play(env, drawn(number), options={"world": number % 2}) for number in (0, 1, 0)]
    new = SchedulingEnv([random_jobs(1, 90), random_jobs(2)], CHANGING)
    again = [play(new, drawn(0), options={"world": 0})]
    assert data_equivalence(first[2], first[0], exact=True)
    assert data_equivalence(again[0], first[0], exact=True)


def test_an_episode_may_be_a_part_of_a_trace():
    jobs = random_jobs(4, 60)
    env = SchedulingEnv(jobs, LARGE, episode_jobs=25)
    first = set()
    for seed in range(8):
        env.reset(seed=seed)
        part = env.world[0]
        first.add(part.ids[0])
        begin = jobs.ids.index(part.ids[0])
        assert part.ids == jobs.ids[begin : begin + 25]
        assert part.submit_s.tolist() == (jobs.submit_s[begin : begin + 25] - jobs.submit_s[begin]).tolist()
    assert len(first) > 3


# ── batches ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "options",
    [
        {"jobs": [random_jobs(seed, 5 + 20 * (seed % 3)) for seed in range(6)], "cluster": CHANGING},
        {"jobs": lambda seed: random_jobs(seed % 50, 12), "cluster": LARGE, "reward": "fairness"},
        {
            "jobs": random_jobs(7, 200),
            "cluster": LARGE,
            "episode_jobs": 30,
            "most_jobs": 8,
            "durations": "none",
        },
    ],
    ids=["worlds", "function", "parts"],
)
def test_a_batch_gives_what_as_many_single_environments_give(options):
    lanes, rng = 20, np.random.default_rng(0)
    one = SyncVectorEnv([lambda: SchedulingEnv(**options)] * lanes)
    other = SchedulingVectorEnv(lanes, **options, threads=2)
    assert data_equivalence(one.reset(seed=3), other.reset(seed=3), exact=True)
    ended = 0
    for _ in range(150):
        scores = rng.integers(-2, 3, (lanes, *other.single_action_space.shape)).astype(np.float64)
        step, same = one.step(scores), other.step(scores)
        assert data_equivalence(step, same, exact=True)
        ended += same[2].sum()
    assert ended > 10
    other.close()


def test_gymnasium_makes_a_batch():
    envs = gymnasium.make_vec(ID, num_envs=3, jobs=TWO, cluster=ONE_SLOT)
    assert isinstance(envs, SchedulingVectorEnv)
    observations, _ = envs.reset(seed=1)
    assert observations in envs.observation_space
    assert envs.step(envs.action_space.sample())[1].tolist() == [-2.0] * 3
    envs.close()


def test_on_any_number_of_threads_all_is_the_same():
    found = []
    for threads in (1, 2, 5):
        envs = SchedulingVectorEnv(32, lambda seed: random_jobs(seed % 99), CHANGING, threads=threads)
        envs.reset(seed=1)
        weights = np.random.default_rng(2).normal(size=(32, envs.job_features))
        found.append(envs.play(weights))
        envs.close()
    assert data_equivalence(found[0], found[1], exact=True)
    assert data_equivalence(found[0], found[2], exact=True)


def test_episodes_that_are_played_compiled_are_those_that_are_stepped():
    """Weights are whole and few, so that sums are the same in any order."""
    envs = SchedulingVectorEnv(3, [random_jobs(1), random_jobs(2)], CHANGING)
    weights = np.zeros((3, envs.job_features))
    weights[[0, 1, 2], [OBSERVED["remaining"], OBSERVED["age"], OBSERVED["gang"]]] = [-1.0, 1.0, 2.0]
    observations, infos = envs.reset(seed=4)
    returns, left, steps = np.zeros(3), np.ones(3, bool), np.zeros(3)
    metrics = {}
    while left.any():
        scores = np.einsum("ijk,ik->ij", observations["jobs"].astype(np.float64), weights)
        observations, rewards, ended, _, infos = envs.step(scores)
        returns += np.where(left, rewards, 0.0)
        steps += left
        for lane in np.flatnonzero(ended & left):
            metrics[lane] = infos["avg_jct_s"][lane]
        left &= ~ended
    envs.reset(seed=4)
    found = envs.play(weights)
    assert found["return"].tolist() == returns.tolist()
    assert found["steps"].tolist() == steps.tolist()
    assert found["avg_jct_s"].tolist() == [metrics[lane] for lane in range(3)]


def test_linear_scores_can_be_srtf():
    """A logarithm in single precision makes equal what hardly differs, so times are not those of few jobs."""
    jobs, cluster = rota.synthetic_trace(jobs=80, gpus=16, load=1.5, seed=2), LARGE
    envs = SchedulingVectorEnv(2, jobs, cluster, most_jobs=200)
    envs.reset(seed=0)
    weights = np.zeros(envs.job_features)
    weights[OBSERVED["remaining"]] = -1.0
    expected = rota.simulate(jobs, cluster, "srtf").metrics
    assert envs.play(weights)["avg_jct_s"] == pytest.approx([expected.avg_jct_s] * 2, rel=1e-9)


def squares(jobs, cluster, parameters, scores):
    """Score by the square of the gang, whether anything is idle or not."""
    for position in range(len(scores)):
        scores[position] = parameters[0] * jobs[position, 2] ** 2 + 0.0 * cluster[3]


def test_a_scorer_may_be_any_function_that_can_be_compiled():
    jobs = random_jobs(8)
    envs = SchedulingVectorEnv(2, jobs, LARGE)
    envs.reset(seed=0)
    found = envs.play([[1.0], [-1.0]], squares)
    for lane, sign in enumerate((1.0, -1.0)):
        env = SchedulingEnv(jobs, LARGE)
        rewards, info = play(
            env, lambda env, sign=sign: scores_of(env, *(sign * env.view.gpus[env.view.order]))
        )
        assert found["return"][lane] == pytest.approx(sum(rewards), rel=1e-12)
        assert found["avg_jct_s"][lane] == info["avg_jct_s"]


def test_after_the_end_an_episode_is_not_played_again_until_the_next_reset():
    envs = SchedulingVectorEnv(2, TWO, ONE_SLOT)
    envs.reset(seed=0)
    first = envs.play(np.zeros(envs.job_features))
    assert data_equivalence(first, envs.play(np.ones(envs.job_features)), exact=True)
    envs.reset()
    assert envs.step(np.zeros((2, 64)))[1].tolist() == [-2.0, -2.0]


# ── mistakes ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reward": "jtc"}, r"unknown reward 'jtc'\. Did you mean 'jct'\?"),
        ({"durations": "some"}, "unknown durations 'some'"),
        ({"placement": "packed"}, "unknown placement 'packed'"),
        ({"rewards": "jct"}, r"unknown option 'rewards'\. Did you mean 'reward'\?"),
        ({"most_jobs": 0}, "most_jobs is 0; give a whole number from 1"),
        ({"most_jobs": 2.5}, r"most_jobs is 2\.5; give a whole number"),
        ({"decide_every_s": 0.0}, r"decide_every_s is 0\.0; give a number of seconds"),
        ({"slowdown_bound_s": "10"}, "slowdown_bound_s is '10'"),
        ({"checkpoint_every_s": -1.0}, r"checkpoint_every_s is -1\.0"),
        ({"failures": 0.1}, r"failures is a float; give a rota\.Failures"),
        ({"jobs": []}, "jobs: none"),
        ({"jobs": 7}, "jobs: a int; give a workload"),
        ({"jobs": "trace.csv"}, "jobs: a str; give a workload"),
        ({"jobs": TWO}, "cluster: none for 'by hand'"),
        ({"jobs": TWO, "cluster": 8}, r"cluster: a int; give a rota\.Cluster"),
        (
            {"jobs": TWO, "cluster": ONE_SLOT, "episode_jobs": 3},
            "episode_jobs is 3, but 'by hand' has 2 jobs",
        ),
        ({"jobs": [(TWO, ONE_SLOT), (TWO, CHANGING)]}, "one has device kinds gpu, another v100, k80"),
        ({"jobs": lambda seed: None, "cluster": ONE_SLOT}, "jobs: a NoneType"),
        ({"jobs": jobs_of((0.0, 3, 1.0)), "cluster": ONE_SLOT}, "job j0 needs 3 GPUs; the cluster has 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        SchedulingEnv(**arguments).reset()
    with pytest.raises(InputError, match=message):
        SchedulingVectorEnv(2, **arguments).reset()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "num_envs is 0; give a whole number of at least 1"),
        ((2.0,), r"num_envs is 2\.0"),
        ((2, TWO, ONE_SLOT, 0), "threads is 0"),
    ],
)
def test_a_batch_has_environments_and_threads(arguments, message):
    *given_first, threads = arguments if len(arguments) == 4 else (*arguments, None)
    with pytest.raises(InputError, match=message):
        SchedulingVectorEnv(*given_first, threads=threads)


@pytest.mark.parametrize(
    "scores", [np.zeros(63), np.zeros((64, 1)), 1.0, ["a"] * 64, np.full(64, np.nan), np.zeros(64, complex)]
)
def test_wrong_scores_are_refused_and_nothing_happens(scores):
    env = SchedulingEnv(TWO, ONE_SLOT)
    env.reset()
    with pytest.raises(InvalidAction, match=r"^scores: .*; give (each job a number|numbers)"):
        env.step(scores)
    assert env.step(np.zeros(64))[1] == -2.0


def test_a_decision_must_be_due():
    env, envs = SchedulingEnv(TWO, ONE_SLOT), SchedulingVectorEnv(2, TWO, ONE_SLOT)
    for call in (
        lambda: env.step(np.zeros(64)),
        lambda: envs.step(np.zeros((2, 64))),
        lambda: envs.play([0.0]),
    ):
        with pytest.raises(ResetNeeded, match=r"reset\(\) first"):
            call()
    for call in (lambda: env.view, lambda: env.world, lambda: envs.view(1), lambda: env.timeline):
        with pytest.raises(InputError, match=r"begin one with reset\(\)"):
            call()
    play(env, drawn(0))
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(64))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wrold": 1}, r"unknown option 'wrold'\. Did you mean 'world'\?"),
        ({"world": 1}, "option world is 1; there are worlds 0 to 0"),
        ({"world": "a"}, "option world is 'a'; give the number of a world"),
    ],
)
def test_wrong_options_of_a_reset_are_refused(options, message):
    for env in (SchedulingEnv(TWO, ONE_SLOT), SchedulingVectorEnv(2, TWO, ONE_SLOT)):
        with pytest.raises(InputError, match=message):
            env.reset(options=options)


def test_a_batch_needs_as_many_worlds_and_seeds_as_it_has_environments():
    envs = SchedulingVectorEnv(2, TWO, ONE_SLOT)
    with pytest.raises(InputError, match="option world has 3 numbers; give one, or 2"):
        envs.reset(options={"world": [0, 0, 0]})
    with pytest.raises(InputError, match="seed has 1 numbers; give one, or 2"):
        envs.reset(seed=[1])


def nothing_known(jobs, cluster, parameters, scores):
    """Score by what is not a number."""
    for position in range(len(scores)):
        scores[position] = np.nan


def impossible(jobs, cluster, parameters, scores):
    """Try what cannot be compiled."""
    scores[0] = jobs.nonsense


def with_a_result(jobs, cluster, parameters, scores):
    """Return what should be filled in."""
    return scores[0]


@pytest.mark.parametrize(
    ("parameters", "scorer", "message"),
    [
        (np.zeros(3), None, r"parameters: an array of shape \(3,\); give 16 numbers"),
        (
            np.zeros((3, 16)),
            None,
            r"parameters: an array of shape \(3, 16\); give numbers for all environments",
        ),
        (np.full(16, np.nan), None, "parameters: "),
        ([0.0], nothing_known, "environment 0: a score is not a number"),
        ([0.0], impossible, "scorer impossible: Numba cannot compile it"),
        ([0.0], with_a_result, "with_a_result: the compiled function returns float64; it must return none"),
        ([0.0], 7, "scorer: a int; give a function"),
    ],
)
def test_wrong_scorers_are_refused(parameters, scorer, message):
    envs = SchedulingVectorEnv(2, TWO, ONE_SLOT)
    envs.reset(seed=0)
    with pytest.raises(InputError, match=message):
        envs.play(parameters, scorer)


def test_jobs_that_can_never_run_are_an_error():
    gone = Cluster((Node(1),), changes=(NodeChange(1.0, 0, joins=False),))
    env = SchedulingEnv(TWO, gone)
    env.reset()
    assert [env.step(np.zeros(64))[-1]["now_s"] for _ in range(2)] == [1.0, 2.0]
    with pytest.raises(Stuck, match="environment 0: at 2 s nothing runs and nothing will happen"):
        env.step(np.zeros(64))
