"""The placement of trials as a Gymnasium environment.

    gymnasium.make("rota.learning.placement.environment:rota/Place-v0", slots=(4, 8), trials=(10, 20))

An episode is a simulation: trials of equal work on slots of unequal speed, until all are done; or, with
`goal="target"`, until one has reached its target. Each step is a decision about one idle slot: which
assignment it gets, if any. The objective is the time that it takes.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Literal, NamedTuple, get_args

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded
from numpy.typing import NDArray

from rota.core.errors import InputError, unknown
from rota.core.population.events import Assign
from rota.learning.placement.cases import GOOD, CaseDistribution, PlacementCase
from rota.policies.allocation.finish import CANDIDATES, LISTS, NOTHING, STEPS, Outlook, fastest_first
from rota.policies.allocation.learned import FEATURES, seen
from rota.simulator.population import PopulationScenario, engine_for

ID = "rota/Place-v0"
LIMIT = 100.0
"""Largest magnitude of an observed number; only those of slots with extreme step times are clipped."""

PlacementObservation = NDArray[np.float32]
Reward = Literal["makespan", "steps"]
Masked = Literal["refuse", "nearest"]


class PlacementQuestion(NamedTuple):
    """An idle slot, and the candidates for its assignment."""

    slot: int
    outlook: Outlook
    features: NDArray[np.float32]
    allowed: NDArray[np.bool_]

    def nearest(self, candidate: int) -> int:
        """Return the candidate itself, or the valid one with the nearest number of steps.

        A masked assignment has as many steps as a valid one: they are the same. To leave the slot idle while
        no other works is not possible; the shortest assignment is nearest to it.
        """
        steps = self.outlook.candidates[:, STEPS]
        off = np.where(self.allowed, np.abs(steps - steps[candidate]), np.inf)
        other_end = (np.arange(len(steps)) > LISTS) != (candidate > LISTS)
        return int(np.lexsort((other_end, off))[0])


class PlacementQuestions:
    """The decisions about idle slots in a simulation, one by one, until its goal is reached."""

    def __init__(self, case: PlacementCase) -> None:
        self.engine = engine_for(case.scene, case.landscape())
        self.engine.write(reviews=False, enough=GOOD)
        self._slots: list[int] = []
        """Idle slots that are still to be asked about at this instant, fastest first."""
        self.due = self._next()
        """The decision that is due; None when the simulation is over."""

    def answer(self, candidate: int) -> None:
        """Decide, and go on to the next question."""
        if self.due is not None and candidate != NOTHING:
            self.engine.commit(Assign(self.due.slot, self.due.outlook.parts(self.engine, candidate)))
        self.due = self._next()

    def _next(self) -> PlacementQuestion | None:
        engine = self.engine
        while not (self._slots and engine.waiting):
            if not engine.advance():
                return None
            self._slots = fastest_first(engine)
        slot = self._slots.pop(0)
        outlook = Outlook(engine, slot)
        return PlacementQuestion(slot, outlook, *seen(engine, slot, outlook))


class PlacementEnv(gymnasium.Env[PlacementObservation, np.int64]):
    """An environment that places trials on slots.

    Action 0 leaves a slot idle. Each of the others gives it an assignment, from the head of the queue or from
    where it suits the slot, of a length that `policies/allocation/finish.py` explains.

    An observation is one row of numbers, `FEATURES` for each of the `CANDIDATES` for an action:
    `observation.reshape(CANDIDATES, FEATURES)` has those of action i in row i, in the order of
    `policies/allocation/learned.py`. They are 0 where an action is masked, and all after the last decision.

    `info` always has an `action_mask`; while decisions are due also the `slot` that they are about and the
    time `now_s` in seconds; at the end the `makespan_s`, its lower bound `bound_s`, and their `ratio`.

    >>> import rota
    >>> env = rota.PlacementEnv(slots=(2, 2), trials=(3, 3))
    >>> observation, info = env.reset(seed=0)
    >>> ended = False
    >>> while not ended:
    ...     observation, reward, ended, _, info = env.step(info["action_mask"].nonzero()[0][-1])
    >>> bool(info["ratio"] >= 1.0)
    True
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # Gymnasium declares it for instances

    def __init__(
        self,
        cases: CaseDistribution | PopulationScenario | None = None,
        *,
        reward: Reward = "makespan",
        masked: Masked = "nearest",
        **ranges: Any,
    ) -> None:
        """Make an environment of cases that are drawn for each episode, or of one scenario with fixed noise.

        Instead of cases, their ranges can be given: `slots`, `trials`, `spread` … as in `CaseDistribution`.

        `reward` "makespan" is −makespan ÷ lower bound, given at the end; "steps" is the share of it since the
        last decision, given at once: the sum is the same. `masked` says what a masked action does: "nearest",
        for agents that know no masks, takes the valid action with the nearest number of steps; "refuse"
        raises `gymnasium.error.InvalidAction`. Raises `rota.RotaError` if an argument is wrong.
        """
        _check("reward", reward, get_args(Reward))
        _check("masked", masked, get_args(Masked))
        self._cases = _cases(cases, ranges)
        self._in_the_end, self._refuses = reward == "makespan", masked == "refuse"
        self._case: PlacementCase | None = None
        self._questions: PlacementQuestions | None = None
        self.action_space = spaces.Discrete(CANDIDATES)
        self.observation_space = spaces.Box(-LIMIT, LIMIT, (CANDIDATES * FEATURES,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[PlacementObservation, dict[str, Any]]:
        """Begin to simulate another case. There are no options."""
        super().reset(seed=seed)
        if options:
            raise InputError(f"unknown option {next(iter(options))!r}; reset takes a seed, and no options")
        self._case = (
            self._cases.draw(self.np_random) if isinstance(self._cases, CaseDistribution) else self._cases
        )
        self._questions = PlacementQuestions(self._case)
        self._rewarded_s = 0.0
        return self._observation(), self._info()

    def step(self, action: np.int64 | int) -> tuple[PlacementObservation, float, bool, bool, dict[str, Any]]:
        """Decide about a slot."""
        if self._questions is None or self._case is None or self._due is None:
            raise ResetNeeded("no decision is due: begin an episode with reset() first")
        self._questions.answer(self._meant(action, self._due))
        reward = self._reward(self._questions.engine.now_s, self._case.bound_s)
        return self._observation(), reward, self._due is None, False, self._info()

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the mask of valid actions, under the name that sb3-contrib expects."""
        return np.zeros(CANDIDATES, np.bool_) if self._due is None else self._due.allowed.copy()

    @property
    def _due(self) -> PlacementQuestion | None:
        return None if self._questions is None else self._questions.due

    def _meant(self, action: np.int64 | int, question: PlacementQuestion) -> int:
        if action in self.action_space:
            if question.allowed[action]:
                return int(action)
            if not self._refuses:
                return question.nearest(int(action))
        raise InvalidAction(
            f"action {action}: not among the {question.allowed.sum()} of {CANDIDATES} that slot "
            f'{question.slot} has now; choose one that info["action_mask"] allows, or make the environment '
            'with masked="nearest"'
        )

    def _reward(self, now_s: float, bound_s: float) -> float:
        if self._in_the_end and self._due is not None:
            return 0.0
        since_s, self._rewarded_s = self._rewarded_s, now_s
        return (since_s - now_s) / bound_s

    def _observation(self) -> PlacementObservation:
        if self._due is None:
            return np.zeros(CANDIDATES * FEATURES, np.float32)
        return self._due.features.ravel().clip(-LIMIT, LIMIT)

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"action_mask": self.action_masks().astype(np.int8)}
        if self._questions is None or self._case is None:
            return info
        now_s, bound_s = self._questions.engine.now_s, self._case.bound_s
        if self._due is None:
            return {**info, "makespan_s": now_s, "bound_s": bound_s, "ratio": now_s / bound_s}
        return {**info, "slot": self._due.slot, "now_s": now_s}


def _cases(
    given: CaseDistribution | PopulationScenario | None, ranges: dict[str, Any]
) -> CaseDistribution | PlacementCase:
    for name in ranges:
        _check(
            "argument",
            name,
            ["cases", "reward", "masked", *(field.name for field in fields(CaseDistribution))],
        )
    if given is None:
        return CaseDistribution(**ranges)
    if not isinstance(given, CaseDistribution | PopulationScenario):
        raise InputError(
            f"cases: {given!r} is neither a CaseDistribution nor a PopulationScenario; "
            "give one, or ranges by their names"
        )
    if ranges:
        raise InputError(f"cases and {', '.join(ranges)} are both given; leave one of them out")
    return PlacementCase(given) if isinstance(given, PopulationScenario) else given


def _check(what: str, given: str, known: Iterable[str]) -> None:
    names = list(known)
    if given not in names:
        raise InputError(unknown(what, given, names))


if ID not in gymnasium.registry:  # registering twice, as a reload would, is a warning
    gymnasium.register(ID, entry_point=f"{__name__}:{PlacementEnv.__name__}")
