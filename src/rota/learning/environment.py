"""Growth of a network in training as a Gymnasium environment on recorded trees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.errors import InputError, unknown
from rota.core.files import located
from rota.core.network import Observation
from rota.learning import features
from rota.learning.evaluate import outcome
from rota.learning.problem import Problem, names, problem_of, read_trees
from rota.learning.reinforce import deviations
from rota.recordings.tree import Prefix

LIMIT = 100.0
"""Largest magnitude of an observed number; only those of very large networks are clipped."""

ObservationArray = NDArray[np.float32]
Reward = Literal["accuracy", "standard"]


@dataclass(frozen=True, slots=True)
class TreeTables:
    """Observations and rewards of a tree, computed once."""

    problem: Problem
    name: str
    """Name among the trees of the environment: `convnet2-digits/early` if there are several data sets."""
    seen: Mapping[Prefix, ObservationArray]
    """The observation after each prefix of actions."""
    rewards: Mapping[Prefix, float]
    """The reward of each whole sequence."""

    @classmethod
    def of(cls, problem: Problem, name: str, width: int, reward: Reward) -> "TreeTables":
        """Compute the tables of a problem in an environment with `width` actions."""
        values = deviations(problem.accuracies) if reward == "standard" else problem.accuracies
        return cls(
            problem,
            name,
            {observation.made: observed(observation, width) for observation in problem.observations},
            dict(zip(problem.sequences, values.tolist(), strict=True)),
        )

    @property
    def label(self) -> str:
        """The name with the seed of the recording: `convnet2/early seed 1`."""
        return f"{self.name} seed {self.problem.tree.seed}"

    @property
    def names(self) -> tuple[str, ...]:
        """All names that the tree can be chosen by; other trees may share some."""
        return self.problem.name, self.problem.label, self.name, self.label

    @property
    def actions(self) -> int:
        """The number of actions."""
        return len(self.problem.tree.actions)

    @property
    def nothing(self) -> int:
        """The action that changes nothing."""
        return self.problem.tree.never[0]

    def metrics(self, sequence: Prefix) -> dict[str, Any]:
        """Return the metrics of a whole sequence for `info`."""
        found = outcome(self.problem, sequence)
        return {name: getattr(found, name) for name in ("sequence", "accuracy", "rank", "headroom")}


def observed(observation: Observation, width: int) -> ObservationArray:
    """Return an observation as one row of numbers, with room for `width` actions."""
    actions = np.zeros((width, features.ACTION))
    actions[: len(observation.actions)] = features.actions(observation)
    row: Floats = np.concatenate(
        [features.time(observation.left), features.network(observation), actions.ravel()]
    )
    row = np.clip(row, -LIMIT, LIMIT)
    return row.astype(np.float32)


def size(width: int) -> int:
    """Return the length of an observation with room for `width` actions."""
    return features.TIME + features.NETWORK + width * features.ACTION


ID = "rota/Adapt-v0"
Masked = Literal["refuse", "nothing"]


class AdaptationEnv(gymnasium.Env[ObservationArray, np.int64]):
    """An environment of recorded trees.

    An observation is one row of numbers, with n actions at most:

        [0 : 8]                    the time that is left (`features.time`)
        [8 : 10]                   the network as a whole (`features.network`)
        [10 + 12·i : 22 + 12·i]    action i, from 0 to n − 1 (`features.actions`)

    It is 0 where a tree has no such action, and everywhere after the last decision. `info` always has the
    `tree` and an `action_mask`; in the end also the `sequence`, its `accuracy`, its `rank` (1 is best) and
    its `headroom`: 0 is as good as the mean of all sequences of this tree, 1 as good as the best.

    >>> import rota
    >>> env = rota.AdaptationEnv("results/recordings/trees/convnet2-cifar10-16-early-seed0")
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(1)
    >>> reward, terminated, info["action_mask"].tolist()
    (0.0, False, [1, 1, 1, 1])
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # Gymnasium declares it for instances

    def __init__(
        self,
        recordings: str | Path | Sequence[str | Path | Problem],
        *,
        reward: Reward = "accuracy",
        masked: Masked = "refuse",
    ) -> None:
        """Make an environment of tree recordings, folders of them, or problems made of them.

        `reward` is "accuracy", or "standard": accuracy in standard deviations from the mean of its tree, so
        that easy and hard trees weigh the same. `masked` says what an action does that the present tree does
        not have: "refuse" raises `gymnasium.error.InvalidAction`; "nothing" changes nothing, for agents that
        know no masks. Raises `rota.RotaError` if an argument is wrong or there are no complete trees.
        """
        _check("reward", reward, get_args(Reward))
        _check("masked", masked, get_args(Masked))
        problems = _problems([recordings] if isinstance(recordings, str | Path) else list(recordings))
        self._width = max(len(problem.tree.actions) for problem in problems)
        called = names([problem.tree for problem in problems])
        self._tables = [
            TreeTables.of(problem, name, self._width, reward)
            for problem, name in zip(problems, called, strict=True)
        ]
        self._tree = self._tables[0]
        self._made: Prefix | None = None
        self._refuses = masked == "refuse"
        self.action_space = spaces.Discrete(self._width)
        self.observation_space = spaces.Box(-LIMIT, LIMIT, (size(self._width),), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObservationArray, dict[str, Any]]:
        """Begin an episode in a tree drawn at random, or in one that the option `tree` names.

        Trees recorded with several seeds share a name (`convnet2/early`); `convnet2/early seed 1` is one of
        them. If a model was recorded on several data sets, `convnet2-digits/early` is one of those.
        """
        super().reset(seed=seed)
        tables = self._named(options or {})
        self._tree = tables[self.np_random.integers(len(tables))]
        self._made = ()
        return self._observation(), self._info()

    def step(self, action: np.int64 | int) -> tuple[ObservationArray, float, bool, bool, dict[str, Any]]:
        """Make a decision. The reward is 0 before the last one."""
        if self._over or self._made is None:
            raise ResetNeeded("no decision is due: begin an episode with reset() first")
        self._made = (*self._made, self._meant(action))
        if not self._over:
            return self._observation(), 0.0, False, False, self._info()
        info = {**self._info(), **self._tree.metrics(self._made)}
        return self._observation(), self._tree.rewards[self._made], True, False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the mask of valid actions, under the name that sb3-contrib expects."""
        return self._mask().astype(bool)

    @property
    def _over(self) -> bool:
        return self._made in self._tree.rewards

    def _observation(self) -> ObservationArray:
        if self._over or self._made is None:
            return np.zeros(size(self._width), np.float32)
        return self._tree.seen[self._made].copy()

    def _info(self) -> dict[str, Any]:
        return {"tree": self._tree.label, "action_mask": self._mask()}

    def _mask(self) -> NDArray[np.int8]:
        mask = np.zeros(self._width, np.int8)
        mask[: 0 if self._over else self._tree.actions] = 1
        return mask

    def _meant(self, action: np.int64 | int) -> int:
        if action in self.action_space:
            if action < self._tree.actions:
                return int(action)
            if not self._refuses:
                return self._tree.nothing
        raise InvalidAction(
            f"action {action}: {self._tree.label} has {self._tree.actions}, counted from 0; "
            'choose one that info["action_mask"] allows, or make the environment with masked="nothing"'
        )

    def _named(self, options: Mapping[str, Any]) -> list[TreeTables]:
        for option in options:
            _check("option", option, ["tree"])
        if "tree" not in options:
            return self._tables
        name = options["tree"]
        found = [table for table in self._tables if name in table.names]
        if not found:
            known = dict.fromkeys(table.name for table in self._tables)
            raise InputError(unknown("tree", str(name), known))
        return found


def _problems(given: Sequence[str | Path | Problem]) -> list[Problem]:
    ready = [each for each in given if isinstance(each, Problem)]
    trees = read_trees(located(Path(each)) for each in given if not isinstance(each, Problem))
    if not ready and not trees:
        raise InputError("recordings: none; give tree recordings, or folders of them")
    return [*ready, *map(problem_of, trees)]


def _check(what: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise InputError(unknown(what, given, known))


if ID not in gymnasium.registry:  # registering twice, as a reload would, is a warning
    gymnasium.register(ID, entry_point=f"{__name__}:{AdaptationEnv.__name__}")
