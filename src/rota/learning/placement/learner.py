"""REINFORCE on random slots and populations, resumable, with the history of its updates."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from rota.core.arrays import Singles
from rota.core.errors import InputError
from rota.core.files import atomic_write
from rota.core.processes import process_map, stopping
from rota.core.table import read_table
from rota.learning.agent import Arrays, as_file, read_arrays, restore, state_of
from rota.learning.learner import write_rows
from rota.learning.placement.config import PlacementAgentConfig
from rota.learning.placement.rollout import EpisodeGroup, EvaluationCase, Lesson, Scorer, learn_from, tried

HISTORY, EVENTS = "updates.csv", "tensorboard"


class PlacementHistoryRow(NamedTuple):
    """How an update went."""

    update: int
    seconds: float
    """Since the beginning."""
    decisions: int
    ratio: float
    """How long it took, by lower bound: the mean over cases of the episode in which nothing was drawn."""
    entropy: float
    lr: float


def write_history(folder: Path, rows: Sequence[PlacementHistoryRow]) -> None:
    """Write all rows."""
    write_rows(folder / HISTORY, PlacementHistoryRow._fields, rows)


def read_history(folder: Path) -> list[PlacementHistoryRow]:
    """What was written."""
    table = read_table(folder / HISTORY, list(PlacementHistoryRow._fields))
    updates, decisions = (table.wholes(name).astype(int).tolist() for name in ("update", "decisions"))
    seconds, *others = (table.floats(name).tolist() for name in ("seconds", "ratio", "entropy", "lr"))
    return [PlacementHistoryRow(*row) for row in zip(updates, seconds, decisions, *others, strict=True)]


def write_events(folder: Path, rows: Iterable[PlacementHistoryRow]) -> None:
    """What TensorBoard shows of a folder."""
    from tensorboardX import SummaryWriter

    with SummaryWriter(str(folder / EVENTS)) as writer:
        for row in rows:
            for name in ("decisions", "ratio", "entropy", "lr"):
                writer.add_scalar(f"placement/{name}", getattr(row, name), row.update)


CHECKPOINT = "checkpoint.npz"
CHECKPOINT_EVERY_S = 10.0
FALLS = 0.6
"""Of learning, at the end: the share in which the rate falls to nothing."""
TRIED, EVERY = 96, 20
"""On so many cases that are set aside the network is tried, after so many updates."""
WORSE = 1.03
"""By what factor a case may take longer than at the beginning before that counts against a network."""
ASIDE = (0, 1)
"""Follows the number of a case in its seed; seeds of learning have another length."""


class PlacementLearner:
    """An agent that is being learned."""

    def __init__(self, config: PlacementAgentConfig, folder: Path, fingerprint: str) -> None:
        self.config, self.folder, self._fingerprint = config, folder, fingerprint
        self.network = Scorer(config.hidden, config.seed)
        self.optimizer = torch.optim.Adam(self.network.parameters())
        self.rows: list[PlacementHistoryRow] = []
        self.seconds = 0.0
        self.first: list[float] = []
        """How long cases that were set aside took at the beginning."""
        self.kept, self.kept_score = self._parameters, inf
        """The network that was best on them."""

    def learn(self, workers: int, on_update: Callable[[PlacementHistoryRow], None] | None = None) -> None:
        """All updates that are left. Ctrl-C saves between two updates."""
        began_s = time.perf_counter() - self.seconds
        saved_s = time.perf_counter()
        with process_map(workers) as learn_all, stopping() as stop:
            if not self.first:
                self._try_out(learn_all)
            while len(self.rows) < self.config.updates:
                row = self._update(learn_all, began_s)
                if len(self.rows) % EVERY == 0 or len(self.rows) == self.config.updates:
                    self._try_out(learn_all)
                if stop.asked or time.perf_counter() - saved_s > CHECKPOINT_EVERY_S:
                    self.save()
                    saved_s = time.perf_counter()
                if stop.asked:
                    raise KeyboardInterrupt
                if on_update is not None:
                    on_update(row)
        with torch.no_grad():
            for own, kept in zip(self.network.parameters(), self.kept, strict=True):
                own.copy_(torch.from_numpy(kept))

    @property
    def _parameters(self) -> tuple[Singles, ...]:
        return tuple(each.detach().numpy().copy() for each in self.network.parameters())

    def _try_out(self, try_all: Any) -> None:
        """Keep the network as it is, if it is better than those before.

        What counts is how much longer cases take than at the beginning, on average; and the worst one, beyond
        what is allowed.
        """
        trial = EvaluationCase(self.config.cases, self.config.hidden, self._parameters, ())
        seeds = [(self.config.seed, number, *ASIDE) for number in range(TRIED)]
        ratios = try_all(tried, [replace(trial, seed=seed) for seed in seeds])
        self.first = self.first or ratios
        longer = np.array(ratios) / np.array(self.first)
        score = float(longer.mean() + max(0.0, longer.max() - WORSE))
        if score < self.kept_score:
            self.kept, self.kept_score = trial.parameters, score

    def _update(self, learn_all: Any, began_s: float) -> PlacementHistoryRow:
        config, number = self.config, len(self.rows)
        to_go = 1.0 - number / config.updates
        asked = EpisodeGroup(
            config.cases, config.hidden, self._parameters, (), config.episodes_per_case, config.drawn,
            config.entropy * to_go,
        )  # fmt: skip
        seeds = [(config.seed, number, case) for case in range(config.cases_per_update)]
        lessons = learn_all(learn_from, [replace(asked, seed=seed) for seed in seeds])
        lr = config.lr * min(1.0, to_go / FALLS)
        self._step(lessons, lr)
        self.seconds = time.perf_counter() - began_s
        decisions = sum(lesson.decisions for lesson in lessons)
        ratio = float(np.mean([lesson.ratio for lesson in lessons]))
        entropy = sum(lesson.entropy for lesson in lessons) / max(1, sum(lesson.drawn for lesson in lessons))
        row = PlacementHistoryRow(number + 1, round(self.seconds, 2), decisions, ratio, entropy, lr)
        self.rows.append(row)
        return row

    def _step(self, lessons: list[Lesson], lr: float) -> None:
        """In the direction of the mean over all decisions that were drawn."""
        drawn = max(1, sum(lesson.drawn for lesson in lessons))
        gradients = zip(*(lesson.gradient for lesson in lessons), strict=True)
        for parameter, each in zip(self.network.parameters(), gradients, strict=True):
            parameter.grad = torch.from_numpy(np.sum(each, axis=0) / np.float32(drawn))
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()

    # ── stopping and going on ───────────────────────────────────────────────────────────────────────────────

    def save(self) -> None:
        """Keep all that exact resumption needs."""
        kept = state_of(self.network, self.optimizer)
        kept |= {f"kept/{number}": values for number, values in enumerate(self.kept)}
        kept |= {"first": np.array(self.first), "kept_score": np.array(self.kept_score)}
        kept |= {"rows": np.array(self.rows), "kept": np.array(self._fingerprint)}
        with atomic_write(self.folder / CHECKPOINT) as file:
            file.write(as_file(kept))

    def resume(self, *, over: bool = False) -> None:
        """Go on from the last checkpoint, if there is one.

        One of another learning is an error, unless it may be written over.
        """
        path = self.folder / CHECKPOINT
        if not path.exists():
            return
        try:
            found = read_arrays(path.read_bytes())
            if str(found["kept"]) == self._fingerprint:
                self._restore(found)
            elif not over:
                raise InputError(
                    f"{path}: another learning is under way here; give another folder with --out, or --again "
                    "to learn this in its place"
                )
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise InputError(f"{path}: cannot be read ({error}); delete it to begin anew") from None

    def _restore(self, found: Arrays) -> None:
        restore(self.network, self.optimizer, found)
        self.first, self.kept_score = found["first"].tolist(), float(found["kept_score"])
        self.kept = tuple(found[f"kept/{number}"] for number in range(len(self.kept)))
        self.rows = [
            PlacementHistoryRow(int(row[0]), row[1], int(row[2]), *row[3:]) for row in found["rows"].tolist()
        ]
        self.seconds = self.rows[-1].seconds if self.rows else 0.0
