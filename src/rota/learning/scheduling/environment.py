"""The schedule of jobs as a Gymnasium environment, alone and as a batch.

    gymnasium.make("rota.learning.scheduling.environment:rota/Schedule-v0", jobs=jobs, cluster=cluster)

An episode is a simulation: jobs arrive at a cluster until all have ended. Each step is an instant at which
something happens; the action ranks the active jobs, and those that fit run, in that order.
"""

import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rota.core.arrays import Array, Floats, Mask
from rota.core.cluster import Cluster
from rota.core.errors import InputError
from rota.core.timeline import Timeline
from rota.core.view import ClusterView
from rota.learning.scheduling.episodes import Episodes, SchedulingOptions, Scorer, check_options
from rota.learning.scheduling.worlds import GivenWorlds
from rota.workload.jobs import Workload

ID = "rota/Schedule-v0"
SchedulingObservation = dict[str, Any]
"""Arrays in single precision: `jobs` and `cluster`."""


class SchedulingEnv(gymnasium.Env[SchedulingObservation, Array]):
    """An environment that schedules jobs.

    The action is a score for each position; the job with the highest score comes first. Jobs get slots in
    that order, as in `view.first_fit`; running jobs may be preempted. Only the order of the scores counts, so
    any numbers will do; the bounds of the action space are those within which it samples. Scores of positions
    without a job are ignored.

    An observation has two arrays. `jobs` has a row per position, in the order of the last ranking, new
    arrivals last; jobs beyond `most_jobs` are not shown, and come after those that are. `cluster` has numbers
    about all of it. `JOB_FEATURES` and `CLUSTER_FEATURES` of `rota.learning.scheduling.kernels` name them,
    docs/scheduling-environment.md explains them. All is 0 after the end.

    `info` has the `action_mask` (which positions have a job), the time `now_s`, the number of `active` jobs,
    and the number of the `world`; in the end also `failed`, `avg_jct_s`, `slowdown_mean`, `makespan_s`,
    `fairness_mean`, `queueing_s` and `utilisation`, as docs/metrics.md defines them.

    >>> import rota
    >>> jobs = rota.synthetic_trace(jobs=50, gpus=16, seed=1)
    >>> cluster = rota.Cluster.uniform(nodes=2, gpus=8)
    >>> env = rota.SchedulingEnv(jobs, cluster, reward="jct")
    >>> observation, info = env.reset(seed=0)
    >>> ended, total = False, 0.0
    >>> while not ended:
    ...     remaining = observation["jobs"][:, 7]
    ...     observation, reward, ended, _, info = env.step(-remaining)
    ...     total += reward
    >>> bool(abs(total + 50 * info["avg_jct_s"]) < 1e-6 * abs(total))
    True
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # Gymnasium declares it for instances

    def __init__(
        self, jobs: GivenWorlds | None = None, cluster: Cluster | None = None, **options: Any
    ) -> None:
        """Make an environment of worlds, one of which is drawn for each episode.

        `jobs` is a workload, a pair of a workload and its cluster, several of these, or a function that makes
        one of a seed; by default 100 jobs are made up on 16 GPUs. `cluster` is that of the workloads that
        come without one. The options are

        - `reward`: "jct" (by default): the return is −(sum of the job completion times), in seconds;
          "slowdown": −(sum of the bounded slowdowns); "makespan": −makespan; "fairness": −(sum of finish-time
          fairness). All but the last are given as they accrue, the last as jobs end.
        - `durations`: "exact", or "none": then what is left of the jobs, and how long they take, is 0 in
          observations.
        - `most_jobs` (64): how many jobs are shown.
        - `episode_jobs`: an episode has so many consecutive jobs, from a place drawn at random.
        - `decide_every_s`: while jobs wait, a decision is due after so many seconds, too.
        - `slowdown_bound_s` (10): shorter jobs count as that long in slowdowns.
        - `checkpoint_every_s`, `placement`, `types`: as in `rota.simulate`.
        - `failures`: a `rota.Failures`; each episode of a world has the same ones. Jobs that fail for good
          count in the return until they fail, in the metrics not at all.
        - `resizes`: jobs with several gang sizes begin with the smallest one, and get idle slots in the order
          of their scores; else they keep the size of the trace.
        - `keeps_timeline`: `timeline` has the events of the episode.

        Raises `rota.RotaError` if an argument is wrong.
        """
        self._episodes = Episodes(1, jobs, cluster, SchedulingOptions.of(options))
        self._batch = self._episodes.batch
        self._lane = self._batch.lanes[0]
        self.observation_space = self._episodes.observation_space
        self.action_space = self._episodes.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[SchedulingObservation, dict[str, Any]]:
        """Begin an episode in a world drawn at random, or in the one whose number is the option `world`.

        Where a function makes worlds, `world` is the seed that it gets.
        """
        super().reset(seed=seed)
        self._episodes.begin(0, self.np_random, _world(check_options(options, ["world"]).get("world")))
        self._episodes.step()
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[SchedulingObservation, float, bool, bool, dict[str, Any]]:
        """Rank the jobs by their scores, and go to the next instant at which there are jobs."""
        if not self._episodes.due(0):
            raise ResetNeeded("no decision is due: begin an episode with reset() first")
        self._episodes.step(np.asarray(action)[np.newaxis])
        over = not self._episodes.due(0)
        info = self._info()
        if over:
            info |= {name: float(value[0]) for name, value in self._episodes.metrics([0]).items()}
        return self._observation(), float(self._lane["reward"]), over, False, info

    def action_masks(self) -> Mask:
        """Return which positions have a job, under the name that sb3-contrib expects."""
        mask: Mask = self._batch.mask[0].astype(np.bool_)
        return mask

    @property
    def view(self) -> ClusterView:
        """The view that a scheduler would get now; `view.order` has the row of the job at each position."""
        self.world  # noqa: B018  # raises an error if there is none
        return self._batch.engine(0).view

    @property
    def world(self) -> tuple[Workload, Cluster]:
        """The jobs and the cluster of the episode."""
        found = self._episodes.world(0)
        return found.jobs, found.cluster

    @property
    def timeline(self) -> Timeline:
        """The events of the episode so far; none unless the option `keeps_timeline` is set."""
        return self._episodes.world(0).lane_engine.engine.timeline()

    def _observation(self) -> SchedulingObservation:
        return {name: each[0] for name, each in self._episodes.observation().items()}

    def _info(self) -> dict[str, Any]:
        mask, *numbers = self._episodes.info().items()
        return {mask[0]: mask[1][0], **{name: each[0].item() for name, each in numbers}}


class SchedulingVectorEnv(VectorEnv[SchedulingObservation, Array, Array]):
    """Environments like `rota.SchedulingEnv` that are stepped together, in compiled code on several threads.

    It gives what as many single environments give, with seeds `seed`, `seed + 1` …, under Gymnasium's
    autoreset in the next step: after the end of an episode, the next step begins another one and ignores the
    action. With a compiled scorer `play` goes through whole episodes without Python.

    >>> import numpy as np
    >>> import rota
    >>> jobs = rota.synthetic_trace(jobs=50, gpus=16, seed=1)
    >>> envs = rota.SchedulingVectorEnv(4, jobs, rota.Cluster.uniform(nodes=2, gpus=8))
    >>> observations, infos = envs.reset(seed=0)
    >>> observations, rewards, terminations, truncations, infos = envs.step(-observations["jobs"][:, :, 7])
    >>> rewards.shape
    (4,)
    >>> weights = np.zeros((4, envs.job_features))
    >>> weights[:, 7] = [-1.0, -1.0, 0.0, 1.0]  # shortest first, twice; as they come; longest first
    >>> found = envs.play(weights)
    >>> bool(found["avg_jct_s"][0] == found["avg_jct_s"][1] < found["avg_jct_s"][3])
    True
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int,
        jobs: GivenWorlds | None = None,
        cluster: Cluster | None = None,
        *,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        """Make so many environments; jobs, cluster and options are those of `rota.SchedulingEnv`.

        `threads` is by default the number of cores that this process may use.
        """
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        for name, value in (("num_envs", num_envs), ("threads", cores if threads is None else threads)):
            if not isinstance(value, int | np.integer) or value < 1:
                raise InputError(f"{name} is {value!r}; give a whole number of at least 1")
        self.num_envs = int(num_envs)
        options_ = SchedulingOptions.of(options)
        self._episodes = Episodes(self.num_envs, jobs, cluster, options_, int(threads or cores))
        self._batch = self._episodes.batch
        self.job_features = self._episodes.job_features
        """How many numbers are observed of each job."""
        self.single_observation_space = self._episodes.observation_space
        self.single_action_space = self._episodes.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._rngs: list[np.random.Generator] = []

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[SchedulingObservation, dict[str, Any]]:
        """Begin an episode in each environment; environment i has the seed `seed + i`.

        The option `world` is the number of a world, for all environments or for each.
        """
        self._seed(seed)
        given: Any = check_options(options, ["world"]).get("world")
        worlds = [given] * self.num_envs if np.ndim(given) == 0 else list(given)
        if len(worlds) != self.num_envs:
            raise InputError(f"option world has {len(worlds)} numbers; give one, or {self.num_envs}")
        for lane, number in enumerate(worlds):
            self._episodes.begin(lane, self._rngs[lane], _world(number))
        self._episodes.step()
        return self._episodes.observation(), self._infos()

    def step(self, actions: Any) -> tuple[SchedulingObservation, Floats, Mask, Mask, dict[str, Any]]:
        """Take a step in each environment; where an episode has ended, begin another one instead."""
        if not self._rngs:
            raise ResetNeeded("no decision is due: begin episodes with reset() first")
        for lane in np.flatnonzero(self._episodes.ended()).tolist():
            self._episodes.begin(lane, self._rngs[lane])
        self._episodes.step(actions)
        ended = self._episodes.ended()
        infos = self._infos()
        lanes = np.flatnonzero(ended)
        if len(lanes):
            metrics = self._episodes.metrics(lanes)
            for place, lane in enumerate(lanes.tolist()):
                each = {name: float(values[place]) for name, values in metrics.items()}
                infos = self._add_info(infos, each, lane)
        rewards = self._batch.lanes["reward"].copy()
        return self._episodes.observation(), rewards, ended, np.zeros(self.num_envs, np.bool_), infos

    def play(self, parameters: Any, scorer: Scorer | None = None) -> dict[str, Floats]:
        """Play the episodes to their ends with a compiled scorer; return an array per result.

        `scorer(jobs, cluster, parameters, scores)` is a function that Numba can compile. It gets what is
        observed (a row of `jobs` for each job that is shown) and fills `scores`. By default scores are
        `jobs @ parameters`. `parameters` are numbers for all environments, or a row for each.

        The results are the `return`, the number of `steps`, and the metrics that `info` has in the end.
        Episodes that are over, as after another `play`, are not played again; begin new ones with `reset`.
        Raises `rota.RotaError` if an argument is wrong, or a score is not a number.
        """
        if not self._rngs:
            raise ResetNeeded("there are no episodes: begin them with reset() first")
        rows = np.asarray(parameters, np.float64)
        if scorer is None and rows.shape[-1:] != (self.job_features,):
            raise InputError(
                f"parameters: an array of shape {rows.shape}; give {self.job_features} numbers, one for each "
                "that is observed of a job, for all environments or a row for each"
            )
        self._episodes.play(scorer, rows)
        lanes = self._batch.lanes
        found = {"return": lanes["total"].copy(), "steps": lanes["steps"].astype(np.float64)}
        return found | self._episodes.metrics(slice(None))

    def view(self, number: int) -> ClusterView:
        """Return the view that a scheduler would get now in an environment, as `SchedulingEnv.view`."""
        self._episodes.world(number)
        return self._batch.engine(number).view

    def world(self, number: int) -> tuple[Workload, Cluster]:
        """Return the jobs and the cluster of the episode in an environment."""
        found = self._episodes.world(number)
        return found.jobs, found.cluster

    def timeline(self, number: int) -> Timeline:
        """Return the events of the episode in an environment, as `SchedulingEnv.timeline`."""
        return self._episodes.world(number).lane_engine.engine.timeline()

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        self._batch.close()

    def _seed(self, seed: int | Sequence[int | None] | None) -> None:
        """Give each environment its random numbers, as Gymnasium does."""
        if isinstance(seed, Sequence | np.ndarray):
            seeds = list(seed)
        else:
            seeds = [None if seed is None else seed + number for number in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise InputError(f"seed has {len(seeds)} numbers; give one, or {self.num_envs}")
        before: Sequence[np.random.Generator | None] = self._rngs or [None] * self.num_envs
        self._rngs = [
            rng if own is None and rng is not None else seeding.np_random(own)[0]
            for rng, own in zip(before, seeds, strict=True)
        ]

    def _infos(self) -> dict[str, Any]:
        infos = self._episodes.info()
        return infos | {f"_{name}": np.ones(self.num_envs, np.bool_) for name in infos}


def _world(number: Any) -> int | None:
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise InputError(f"option world is {number!r}; give the number of a world")
    return int(number)


if ID not in gymnasium.registry:  # registering twice, as a reload would, is a warning
    gymnasium.register(
        ID,
        entry_point=f"{__name__}:{SchedulingEnv.__name__}",
        vector_entry_point=f"{__name__}:{SchedulingVectorEnv.__name__}",
    )
