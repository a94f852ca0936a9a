"""Learn one stage of an agent, in a loop that can be stopped and resumed."""

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from rota.core.errors import InputError
from rota.core.files import parsed, write_file
from rota.core.processes import stopping
from rota.learning.agent import Agent, arrays, fill, read_agent, restore, state_of
from rota.learning.config import Method
from rota.learning.files import HistoryRow, read_history, write_history
from rota.learning.networks.registry import options_for
from rota.learning.problem import problem_of, tree_digest
from rota.learning.reinforce import EntropySchedule, Tables, UpdateStatistics, update
from rota.policies.agents import WEIGHTS, Arrays, as_npz, read_npz
from rota.recordings.tree import Tree
from rota.training.device import threads

ROWS = 1000
"""Largest number of history rows of a stage; each row averages as many updates as that takes."""
CHECKPOINT_EVERY_S = 5.0
CHECKPOINT, DONE = "checkpoint.npz", "done.json"

Update = TypeVar("Update")


def window(updates: int) -> int:
    """Return the number of updates that one history row averages."""
    return max(1, -(-updates // ROWS))


class ResumableLearner(ABC):
    """A learning loop that saves checkpoints and resumes from the last one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds = 0.0
        """Seconds spent learning, also before the last resumption."""

    def run(
        self,
        updates: int,
        done: Callable[[], int],
        make: Callable[[], Update],
        on_update: Callable[[Update], None] | None,
    ) -> None:
        """Make updates until `updates` are `done`. Ctrl-C saves a checkpoint between two of them."""
        began_s = time.perf_counter() - self.seconds
        saved_s = time.perf_counter()
        with stopping() as stop:
            while done() < updates:
                made = make()
                now_s = time.perf_counter()
                self.seconds = now_s - began_s
                if stop.asked or now_s - saved_s > CHECKPOINT_EVERY_S:
                    self.save()
                    saved_s = now_s
                if stop.asked:
                    raise KeyboardInterrupt
                if on_update is not None:
                    on_update(made)

    def save(self) -> None:
        """Write a checkpoint with all that exact resumption needs."""
        write_file(self.folder / CHECKPOINT, as_npz(self._state()))

    def resume(self) -> None:
        """Continue from the checkpoint, if there is one."""
        path = self.folder / CHECKPOINT
        if not path.exists():
            return
        try:
            self._restore(read_npz(path.read_bytes()))
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise InputError(f"{path}: cannot be read ({error}); delete it to begin anew") from None

    def is_another(self, fingerprint: str, own: str, *, over: bool) -> bool:
        """Return whether a checkpoint is of another agent, to be written over; raise if it may not be."""
        if fingerprint != own and not over:
            raise InputError(
                f"{self.folder / CHECKPOINT}: another agent is being learned here; give another folder with "
                "--out, or --again to learn this in its place"
            )
        return fingerprint != own

    @abstractmethod
    def _state(self) -> dict[str, NDArray[Any]]:
        """Return the content of a checkpoint."""

    @abstractmethod
    def _restore(self, found: Arrays) -> None:
        """Take over the content of a checkpoint."""


RULES = 1
"""Version of the learning rules: increase it when the same stage would give other weights."""


@dataclass(frozen=True)
class LearningStage:
    """A stage of learning: its trees, its method and its length."""

    method: Method
    trees: tuple[Tree, ...]
    episodes: int
    """Episodes of each tree."""
    temperature: float
    seed: int
    folder: Path
    """Folder of all stages."""
    before: "LearningStage | None" = None
    """Stage whose weights this one starts from."""
    start: Path | None = None
    """Folder of the agent that this one starts from, if there is no stage before."""
    start_sha256: str = ""

    @cached_property
    def digest(self) -> str:
        """A digest of all that determines the result."""
        facts = {
            "rules": RULES,
            "method": asdict(self.method),
            "trees": [tree_digest(tree) for tree in self.trees],
            "episodes": self.episodes,
            "temperature": self.temperature,
            "seed": self.seed,
            "before": self.before.digest if self.before else self.start_sha256,
        }
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    @property
    def place(self) -> Path:
        """The folder of this stage."""
        return self.folder / self.digest

    @property
    def done(self) -> bool:
        """Whether the stage has been learned to its end."""
        return (self.place / DONE).is_file()

    @property
    def updates(self) -> int:
        """The number of updates: enough for the episodes asked for."""
        return -(-self.episodes // self.method.episodes_per_update)

    @property
    def drawn(self) -> int:
        """The number of episodes of all trees together."""
        return self.updates * self.method.episodes_per_update * len(self.trees)

    @property
    def number(self) -> int:
        """The number of the stage, from 0."""
        return 0 if self.before is None else self.before.number + 1

    @property
    def chain(self) -> "list[LearningStage]":
        """All stages up to this one, in order."""
        return [*(self.before.chain if self.before else []), self]


class StageLearner(ResumableLearner):
    """The learner of one stage."""

    def __init__(self, stage: LearningStage) -> None:
        super().__init__(stage.place)
        self.stage = stage
        self.agent = begin(stage)
        self.tables = Tables.of([problem_of(tree) for tree in stage.trees], self.agent.network, stage.method)
        self.optimizer = torch.optim.Adam(self.agent.network.parameters(), foreach=True)
        self.generator = torch.Generator().manual_seed(stage.seed + 1_000_003 * stage.number)
        self.update = 0
        self.rows: list[HistoryRow] = []
        self.made: list[UpdateStatistics] = []
        """Updates that are not in a row yet."""

    def learn(self, on_update: Callable[[int], None] | None = None) -> None:
        """Make all remaining updates; `on_update` gets the number of episodes of each."""
        stage, size = self.stage, window(self.stage.updates)
        drawn = stage.method.episodes_per_update * len(stage.trees)

        def make() -> int:
            self._update(size)
            return drawn

        self.run(stage.updates, lambda: self.update, make, on_update)

    def _update(self, size: int) -> None:
        stage = self.stage
        schedule = EntropySchedule.at(stage.method, self.update, stage.updates, stage.temperature)
        self.made.append(
            update(self.agent.network, self.tables, self.optimizer, stage.method, schedule, self.generator)
        )
        self.update += 1
        if len(self.made) == size or self.update == stage.updates:
            episodes = self.update * stage.method.episodes_per_update * len(stage.trees)
            mean = UpdateStatistics(*np.mean(self.made, axis=0).tolist())
            self.rows.append(HistoryRow(stage.number, episodes, *mean, schedule.lr, schedule.temperature))
            self.made = []

    def _state(self) -> dict[str, NDArray[Any]]:
        write_history(self.folder, self.rows)
        return state_of(self.agent.network, self.optimizer) | {
            "random": self.generator.get_state().numpy(),
            "progress": np.array([self.update, self.seconds]),
            "made": np.array(self.made).reshape(-1, len(UpdateStatistics._fields)),
        }

    def _restore(self, found: Arrays) -> None:
        update_, seconds = found["progress"].tolist()
        self.generator.set_state(torch.from_numpy(found["random"]))
        self.made = [UpdateStatistics(*row) for row in found["made"].tolist()]
        restore(self.agent.network, self.optimizer, found)
        self.update, self.seconds = int(update_), seconds
        last = self.update * self.stage.method.episodes_per_update * len(self.stage.trees)
        self.rows = [row for row in read_history(self.folder, HistoryRow) if row.episodes <= last]

    def finish(self) -> None:
        """Write what was learned, `done.json` last."""
        write_history(self.folder, self.rows)
        write_file(self.folder / WEIGHTS, as_npz(arrays(self.agent.network)))
        facts = {"seconds": self.seconds, "episodes": self.stage.drawn}
        write_file(self.folder / DONE, json.dumps(facts))
        (self.folder / CHECKPOINT).unlink(missing_ok=True)


def begin(stage: LearningStage) -> Agent:
    """Return the agent that a stage starts from."""
    if stage.start is not None:
        return read_agent(stage.start)
    if stage.before is not None:
        return learned(stage.before)
    name = stage.method.network
    return Agent.new(name, options_for(name, len(stage.trees[0].actions)), stage.seed)


def learned(stage: LearningStage) -> Agent:
    """Return the agent at the end of a stage that is done."""
    first = stage.chain[0]
    agent = begin(first)
    path = stage.place / WEIGHTS
    try:
        fill(agent.network, read_npz(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); learn it again") from None
    return agent


def spent(stage: LearningStage) -> tuple[float, int]:
    """Return the seconds and episodes of a stage that is done and of all before it."""
    found = [_spent(each.place / DONE) for each in stage.chain]
    return sum(seconds for seconds, _ in found), sum(episodes for _, episodes in found)


def _spent(path: Path) -> tuple[float, int]:
    try:
        found = parsed(path.read_text("utf-8"))
        return float(found["seconds"]), int(found["episodes"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); delete it to learn this stage again") from None


def carry_through(stage: LearningStage, on_update: Callable[[int], None] | None = None) -> None:
    """Learn a stage whose predecessor is done, on one core; continues from its checkpoint."""
    with threads(1):  # small networks are fastest so, and sums are the same on any machine
        learner = StageLearner(stage)
        learner.resume()
        learner.learn(on_update)
        learner.finish()


def place_of(folder: Path) -> Path:
    """Return the folder of the stages of all runs in a folder; it exists until all are learned."""
    return folder / ".stages"
