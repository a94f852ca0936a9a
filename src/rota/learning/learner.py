"""Learn one stage, resumable, and keep the history of its updates."""

import csv
import hashlib
import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from rota.core.errors import InputError
from rota.core.files import atomic_write, parsed
from rota.core.processes import stopping
from rota.core.table import read_table
from rota.learning.agent import (
    Agent,
    Arrays,
    arrays,
    as_file,
    fill,
    read_agent,
    read_arrays,
    restore,
    state_of,
)
from rota.learning.config import Method
from rota.learning.networks.registry import options_for
from rota.learning.problem import problem_of, tree_digest
from rota.learning.reinforce import EntropySchedule, Tables, UpdateStatistics, update
from rota.recordings.tree import Tree

ROWS = 1000
"""In a stage at most; each sums up as many updates as that takes."""
FILE = "updates.csv"
EVENTS = "tensorboard"


class HistoryRow(NamedTuple):
    """Some updates, one after the other: means over their episodes."""

    stage: int
    """From 0 on."""
    episodes: int
    """Of all scenarios, since the stage began, when they were over."""
    objective: float
    """What is made small: −log p × what an episode was worth."""
    reward: float
    accuracy: float
    entropy: float
    """Of the sequences of a scenario, in nats: 0 if the agent is sure."""
    lr: float
    temperature: float


def window(updates: int) -> int:
    """How many updates a row sums up."""
    return max(1, -(-updates // ROWS))


def write_history(folder: Path, rows: Sequence[HistoryRow]) -> None:
    """Write all rows."""
    write_rows(folder / FILE, HistoryRow._fields, rows)


def write_rows(path: Path, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    with atomic_write(path) as stream:
        stream.write(text.getvalue().encode())


def read_history(folder: Path) -> list[HistoryRow]:
    """What was written."""
    table = read_table(folder / FILE, list(HistoryRow._fields))
    whole = [table.wholes(name).astype(int).tolist() for name in HistoryRow._fields[:2]]
    others = [table.floats(name).tolist() for name in HistoryRow._fields[2:]]
    return [HistoryRow(*row) for row in zip(*whole, *others, strict=True)]


def write_events(folder: Path, rows: Iterable[HistoryRow]) -> None:
    """Add rows to what TensorBoard shows of a folder; stages follow on each other."""
    from tensorboardX import SummaryWriter

    before = 0
    last = HistoryRow(0, 0, *[0.0] * 6)
    with SummaryWriter(str(folder / EVENTS)) as writer:
        for row in rows:
            if row.stage > last.stage:
                before += last.episodes
            for name in HistoryRow._fields[2:]:
                writer.add_scalar(f"learning/{name}", getattr(row, name), before + row.episodes)
            last = row


RULES = 1
"""Of learning: to be counted up when the same stage would come to something else than before."""


@dataclass(frozen=True)
class LearningStage:
    """What is learned, from what, for how long."""

    method: Method
    trees: tuple[Tree, ...]
    episodes: int
    """Of each tree."""
    temperature: float
    seed: int
    folder: Path
    """Where stages are kept."""
    before: "LearningStage | None" = None
    """The stage whose weights this one starts from."""
    start: Path | None = None
    """Or the agent, which is named by the checksum of its weights,"""
    start_sha256: str = ""

    @cached_property
    def digest(self) -> str:
        """Of all that matters."""
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
        return (self.place / "done.json").is_file()

    @property
    def updates(self) -> int:
        """One or more, in which no fewer episodes are drawn than were asked for."""
        return -(-self.episodes // self.method.episodes_per_update)

    @property
    def drawn(self) -> int:
        """Episodes of all trees together."""
        return self.updates * self.method.episodes_per_update * len(self.trees)

    @property
    def number(self) -> int:
        """From 0 on."""
        return 0 if self.before is None else self.before.number + 1

    @property
    def chain(self) -> "list[LearningStage]":
        """The stages up to this one, the first one first."""
        return [*(self.before.chain if self.before else []), self]


CHECKPOINT_EVERY_S = 5.0
WEIGHTS, CHECKPOINT, DONE = "weights.npz", "checkpoint.npz", "done.json"


class StageLearner:
    """A stage that is being learned."""

    def __init__(self, stage: LearningStage) -> None:
        self.stage = stage
        self.agent = begin(stage)
        self.tables = Tables.of([problem_of(tree) for tree in stage.trees], self.agent.network, stage.method)
        self.optimizer = torch.optim.Adam(self.agent.network.parameters(), foreach=True)
        self.generator = torch.Generator().manual_seed(stage.seed + 1_000_003 * stage.number)
        self.update = 0
        self.seconds = 0.0
        self.rows: list[HistoryRow] = []
        self.made: list[UpdateStatistics] = []
        """Updates that are not in a row yet."""

    def learn(self, on_update: Callable[[int], None] | None = None) -> None:
        """All updates that are left; tells how many episodes each drew. Ctrl-C saves between two updates."""
        stage, began_s = self.stage, time.perf_counter() - self.seconds
        saved_s = time.perf_counter()
        size, drawn = window(stage.updates), stage.method.episodes_per_update * len(stage.trees)
        with stopping() as stop:
            while self.update < stage.updates:
                self._update(size)
                now_s = time.perf_counter()
                self.seconds = now_s - began_s
                if stop.asked or now_s - saved_s > CHECKPOINT_EVERY_S:
                    self.save()
                    saved_s = now_s
                if stop.asked:
                    raise KeyboardInterrupt
                if on_update is not None:
                    on_update(drawn)

    def _update(self, size: int) -> None:
        stage = self.stage
        pressure = EntropySchedule.at(stage.method, self.update, stage.updates, stage.temperature)
        self.made.append(
            update(self.agent.network, self.tables, self.optimizer, stage.method, pressure, self.generator)
        )
        self.update += 1
        if len(self.made) == size or self.update == stage.updates:
            episodes = self.update * stage.method.episodes_per_update * len(stage.trees)
            mean = UpdateStatistics(*np.mean(self.made, axis=0).tolist())
            self.rows.append(HistoryRow(stage.number, episodes, *mean, pressure.lr, pressure.temperature))
            self.made = []

    # ── stopping and going on ───────────────────────────────────────────────────────────────────────────────

    def save(self) -> None:
        """Keep all that exact resumption needs."""
        state = state_of(self.agent.network, self.optimizer)
        state["random"] = self.generator.get_state().numpy()
        state["progress"] = np.array([self.update, self.seconds])
        state["made"] = np.array(self.made).reshape(-1, len(UpdateStatistics._fields))
        write_history(self.stage.place, self.rows)
        with atomic_write(self.stage.place / CHECKPOINT) as file:
            file.write(as_file(state))

    def resume(self) -> None:
        """Go on from the last checkpoint, if there is one."""
        path = self.stage.place / CHECKPOINT
        if not path.exists():
            return
        try:
            self._restore(read_arrays(path.read_bytes()))
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise InputError(
                f"{path}: cannot be read ({error}); delete it to begin this stage anew"
            ) from None
        last = self.update * self.stage.method.episodes_per_update * len(self.stage.trees)
        self.rows = [row for row in read_history(self.stage.place) if row.episodes <= last]

    def _restore(self, found: Arrays) -> None:
        update_, seconds = found["progress"].tolist()
        self.generator.set_state(torch.from_numpy(found["random"]))
        self.made = [UpdateStatistics(*row) for row in found["made"].tolist()]
        restore(self.agent.network, self.optimizer, found)
        self.update, self.seconds = int(update_), seconds

    def finish(self) -> None:
        """Keep what was learned; `done.json` comes last."""
        write_history(self.stage.place, self.rows)
        with atomic_write(self.stage.place / WEIGHTS) as stream:
            stream.write(arrays(self.agent.network))
        with atomic_write(self.stage.place / DONE) as stream:
            facts = {"seconds": self.seconds, "episodes": self.stage.drawn}
            stream.write(json.dumps(facts).encode())
        (self.stage.place / CHECKPOINT).unlink(missing_ok=True)


def begin(stage: LearningStage) -> Agent:
    """The agent that a stage begins with."""
    if stage.start is not None:
        return read_agent(stage.start)
    if stage.before is not None:
        return learned(stage.before)
    name = stage.method.network
    return Agent.new(name, options_for(name, len(stage.trees[0].actions)), stage.seed)


def learned(stage: LearningStage) -> Agent:
    """The agent at the end of a stage that is done."""
    first = stage.chain[0]
    agent = begin(first)
    path = stage.place / WEIGHTS
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); learn it again") from None
    fill(agent.network, content, path)
    return agent


def spent(stage: LearningStage) -> tuple[float, int]:
    """Seconds and episodes of a stage that is done, with all before it."""
    found = [_spent(each.place / DONE) for each in stage.chain]
    return sum(seconds for seconds, _ in found), sum(episodes for _, episodes in found)


def _spent(path: Path) -> tuple[float, int]:
    try:
        found = parsed(path.read_text("utf-8"))
        return float(found["seconds"]), int(found["episodes"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); delete it to learn this stage again") from None


def carry_through(stage: LearningStage, on_update: Callable[[int], None] | None = None) -> None:
    """Learn a stage whose beginning is there, on one core; what was stopped goes on."""
    with one_thread():
        learner = StageLearner(stage)
        learner.resume()
        learner.learn(on_update)
        learner.finish()


@contextmanager
def one_thread() -> Iterator[None]:
    """Small networks are fastest so, and sums come out the same on any machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def place_of(folder: Path) -> Path:
    """Where the stages of the runs in a folder are kept until all are learned."""
    return folder / ".stages"
