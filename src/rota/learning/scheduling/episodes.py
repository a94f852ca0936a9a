"""Episodes of scheduling, several at once: what an environment and a batch of them share."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction
from numba.core.errors import NumbaError

from rota.core.arrays import Array, Floats, Mask, Singles
from rota.core.batch import EngineBatch
from rota.core.cluster import Cluster
from rota.core.compiled import kernel
from rota.core.costs import CostModel
from rota.core.durations import EXACT_DURATIONS, Durations, Knows, durations_of
from rota.core.errors import ConfigError, InputError, unknown
from rota.core.failures import Failures
from rota.core.lanes import DECIDE, FAIRNESS, JCT, MAKESPAN, OVER, SLOWDOWN
from rota.core.placement import Style, Types
from rota.learning.scheduling.kernels import CLUSTER_FEATURES, JOB_FEATURES, LIMIT, linear, observe
from rota.learning.scheduling.worlds import EngineRules, EpisodeWorld, GivenWorlds, Worlds

Reward = Literal["jct", "slowdown", "makespan", "fairness"]
REWARDS: dict[Reward, int] = {"jct": JCT, "slowdown": SLOWDOWN, "makespan": MAKESPAN, "fairness": FAIRNESS}
Scorer = Callable[..., None]

MOST_POSITIONS = 100_000


@dataclass(frozen=True, slots=True)
class SchedulingOptions:
    """Options of an environment in which jobs are scheduled."""

    reward: Reward = "jct"
    """Quantity whose growth is the negative reward: job completion times, bounded slowdowns, makespan or
    finish-time fairness."""
    durations: Durations | Knows = EXACT_DURATIONS
    """What is observed of how long jobs take: exact, none, noisy or predicted, or a `rota.Durations`."""
    most_jobs: int = 64
    """Number of jobs that are observed and scored."""
    episode_jobs: int | None = None
    """Number of consecutive jobs in an episode, from a place drawn at random; None for all."""
    decide_every_s: float = math.inf
    """Seconds after which a decision is due, while jobs wait, although nothing has happened."""
    slowdown_bound_s: float = 10.0
    """Seconds that a job is taken to last at least in its slowdown."""
    checkpoint_every_s: float = 0.0
    """Seconds of progress between checkpoints; newer progress is lost on preemption. 0 loses none."""
    placement: Style = "consolidated"
    """How a gang is placed on nodes."""
    types: Types = "fastest"
    """Devices that jobs prefer: fastest, advantage or blind."""
    failures: Failures | None = None
    """Failures of jobs and nodes, the same in each episode of a world; None for none."""
    resizes: bool = False
    """Whether jobs that can have several gang sizes begin with the smallest one, and get idle slots in the
    order of their scores; else they keep the size of the trace."""
    keeps_timeline: bool = False
    """Whether `timeline` has the events of the episode."""

    def __post_init__(self) -> None:
        for name, known in (
            ("reward", get_args(Reward)),
            ("placement", get_args(Style)),
            ("types", get_args(Types)),
        ):
            if getattr(self, name) not in known:
                raise ConfigError(unknown(name, str(getattr(self, name)), known))
        object.__setattr__(self, "durations", durations_of(self.durations))
        if not isinstance(self.failures, Failures | None):
            raise ConfigError(f"failures is a {type(self.failures).__name__}; give a rota.Failures")
        self._check_number("most_jobs", 1, MOST_POSITIONS)
        if self.episode_jobs is not None:
            self._check_number("episode_jobs", 1, MOST_POSITIONS * 1000)
        for name, least in (("decide_every_s", 1e-3), ("slowdown_bound_s", 1e-3), ("checkpoint_every_s", 0)):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not value >= least:
                raise ConfigError(f"{name} is {value!r}; give a number of seconds of at least {least:g}")

    def _check_number(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
            raise ConfigError(f"{name} is {value!r}; give a whole number from {least} to {most:,}")

    @classmethod
    def of(cls, given: dict[str, Any]) -> "SchedulingOptions":
        """Return the options of these names; raise ConfigError if one is not known."""
        known = [each.name for each in fields(cls)]
        for name in given:
            if name not in known:
                raise ConfigError(unknown("option", name, ["jobs", "cluster", *known]))
        return cls(**given)

    @property
    def rules(self) -> EngineRules:
        """The rules for engines."""
        cost = CostModel(checkpoint_every_s=float(self.checkpoint_every_s))
        bound_s, keeps = float(self.slowdown_bound_s), bool(self.keeps_timeline)
        return EngineRules(
            cost,
            self.placement,
            self.types,
            bound_s,
            keeps,
            self.failures,
            durations_of(self.durations),
            resizes=bool(self.resizes),
        )


class Episodes:
    """Episodes that go on side by side, a lane each."""

    def __init__(
        self,
        lanes: int,
        jobs: GivenWorlds | None,
        cluster: Cluster | None,
        options: SchedulingOptions,
        threads: int = 1,
    ) -> None:
        self._worlds = Worlds(jobs, cluster, options.episode_jobs, options.rules)
        kinds, width = len(self._worlds.kinds), int(options.most_jobs)
        self.job_features, cluster_features = len(JOB_FEATURES) + kinds, len(CLUSTER_FEATURES) + kinds
        self.batch = EngineBatch(
            lanes, observe, (width, self.job_features, cluster_features),
            reward=REWARDS[options.reward], knows_durations=durations_of(options.durations).known != "none",
            decide_every_s=float(options.decide_every_s), threads=threads,
        )  # fmt: skip
        self.observation_space = spaces.Dict(
            {
                "jobs": spaces.Box(0.0, LIMIT, (width, self.job_features), np.float32),
                "cluster": spaces.Box(0.0, LIMIT, (cluster_features,), np.float32),
            }
        )
        self.action_space = spaces.Box(-1.0, 1.0, (width,), np.float32)
        self._present: list[EpisodeWorld | None] = [None] * lanes
        self._numbers = np.zeros(lanes, np.int64)
        self._compiled: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def stages(self) -> Array:
        """The stage of each lane, as in `rota.core.lanes`."""
        return np.asarray(self.batch.lanes["stage"])

    def world(self, lane: int) -> EpisodeWorld:
        """Return the world of the episode in a lane."""
        found = self._present[lane]
        if found is None:
            raise InputError("there is no episode yet; begin one with reset()")
        return found

    def begin(self, lane: int, rng: np.random.Generator, number: int | None = None) -> None:
        """Begin an episode in a lane; its first step goes to the first decision."""
        before = self._present[lane]
        if before is not None:
            self._worlds.give_back(before)
            self._present[lane] = None
        world = self._present[lane] = self._worlds.draw(rng, number)
        self._numbers[lane] = world.number
        self.batch.begin(lane, world.lane_engine)

    def step(self, scores: Any = None) -> None:
        """Take a decision in each lane in which one is due, and go to the first one in those that begin.

        Raises InvalidAction if the scores have a wrong shape, or are not numbers; nothing is changed then.
        """
        if scores is not None:
            self._take(scores)
        self.batch.lanes["left"] = 1
        self.batch.step()

    def play(self, scorer: Any, parameters: Any) -> None:
        """Play all episodes to their ends; `rota.SchedulingVectorEnv.play` says how."""
        name = getattr(scorer, "__name__", "linear" if scorer is None else repr(scorer))
        try:
            self.batch.use_scorer(self._kernel(scorer), self._rows(parameters))
        except NumbaError as error:
            raise InputError(f"scorer {name}: Numba cannot compile it: {error}") from None
        try:
            self.batch.lanes["left"] = np.iinfo(np.int64).max
            self.batch.step(parts=PARTS)
        finally:
            self.batch.use_scorer(None, np.zeros((len(self), 0)))

    def observation(self) -> dict[str, Singles]:
        """Return a copy of what is observed in each lane."""
        return {"jobs": self.batch.jobs.copy(), "cluster": self.batch.cluster.copy()}

    def info(self) -> dict[str, Array]:
        """Return what is said about each lane."""
        lanes = self.batch.lanes
        return {
            "action_mask": self.batch.mask.copy(),
            "now_s": lanes["now_s"].copy(),
            "active": lanes["active"].copy(),
            "world": self._numbers.copy(),
        }

    def metrics(self, lanes: Any) -> dict[str, Floats]:
        """Return the metrics of episodes that are over: a value per lane, each as `docs/metrics.md` says."""
        found = self.batch.lanes[lanes]
        engines = [self.world(lane).lane_engine.engine for lane in np.arange(len(self))[lanes].tolist()]
        sums = {name: np.array([engine.sums[name] for engine in engines]) for name in ENGINE_SUMS}
        jobs = np.array([engine.done for engine in engines], np.float64)
        per_gpu = np.array([engine.cluster.slots_per_gpu for engine in engines], np.float64)
        finished = np.maximum(found["finished"], 1.0)
        return {
            "failed": jobs - found["finished"],
            "avg_jct_s": found["jct_s"] / finished,
            "slowdown_mean": found["slowdowns"] / finished,
            "makespan_s": found["span_s"],
            "fairness_mean": found["fairness"] / finished,
            "queueing_s": sums["waiting_s"] / jobs,
            "utilisation": sums["busy_s"] / np.maximum(found["gpu_s"] * per_gpu, 1e-300),
        }

    def ended(self) -> Mask:
        """Return in which lanes no episode goes on."""
        return np.asarray(self.stages == OVER)

    def due(self, lane: int) -> bool:
        """Return whether a decision is due in a lane."""
        return bool(self.batch.lanes["stage"][lane] == DECIDE)

    def _take(self, scores: Any) -> None:
        given, wanted = np.asarray(scores), self.batch.scores
        if given.shape != wanted.shape or given.dtype.kind not in "fiu":
            what = f"{given.dtype} of shape {given.shape}"
            raise InvalidAction(f"scores: {what}; give numbers, one per position: {wanted.shape}")
        if np.isnan(given).any() and np.isnan(given[self.batch.mask.astype(bool)]).any():
            raise InvalidAction("scores: one of a job is not a number; give each job a number")
        wanted[...] = given

    def _kernel(self, scorer: Any) -> Any:
        if scorer is None:
            return linear
        if hasattr(scorer, "py_func"):
            return scorer
        if not callable(scorer):
            raise InputError(f"scorer: a {type(scorer).__name__}; give a function that Numba can compile")
        if scorer not in self._compiled:
            self._compiled[scorer] = kernel(scorer)
        return self._compiled[scorer]

    def _rows(self, parameters: Any) -> Floats:
        """Return a row of parameters for each lane."""
        rows = np.atleast_2d(np.asarray(parameters, np.float64))
        if rows.ndim != 2 or len(rows) not in (1, len(self)) or np.isnan(rows).any():
            raise InputError(
                f"parameters: an array of shape {np.shape(parameters)}; give numbers for all environments, "
                f"or a row for each of the {len(self)}"
            )
        return np.ascontiguousarray(np.broadcast_to(rows, (len(self), rows.shape[1])))


ENGINE_SUMS = ("waiting_s", "busy_s")
PARTS = 8  # pieces that each thread plays one after the other, since episodes take unequal times


def check_options(given: dict[str, Any] | None, known: Iterable[str]) -> dict[str, Any]:
    """Return the options of a reset; raise InputError if one is not known."""
    for name in given or {}:
        if name not in known:
            raise InputError(unknown("option", name, known))
    return given or {}
