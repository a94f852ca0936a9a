"""A whole training run: its budget, its checkpoints and its tables."""

import csv
import io
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rota.config.load import dump
from rota.core.errors import ConfigError, InputError
from rota.core.files import folder_lock, write_file
from rota.core.network import GrowthPolicy
from rota.core.processes import StopRequest, stopping
from rota.recordings.folder import provenance
from rota.recordings.tree import read_tree
from rota.training.checkpoint import load, save
from rota.training.clock import Epoch, MadeChange, ProfiledClock, TrainingClock, WallClock
from rota.training.config import TrainConfig
from rota.training.decisions import AllocationCourse, Decider, Decision, DecisionProgress
from rota.training.device import description, device
from rota.training.setup import LIBRARIES
from rota.training.trainer import Trainer


def epochs_csv(rows: list[dict[str, Any]]) -> bytes:
    """Return a CSV table with a row per epoch, metrics last."""
    metrics = sorted({name for row in rows for name in row["metrics"]})
    plain = ["number", "ended", "steps", "at_s", "lr", "loss"]
    head = ["epoch", *plain[1:], *(f"validation_{name}" for name in metrics), "failure"]
    lines = []
    for row in rows:
        measured = [row["metrics"].get(name, math.nan) for name in metrics]
        lines.append([*(row[name] for name in plain), *measured, row["failure"]])
    return _csv([head, *lines])


def decisions_csv(decisions: Sequence[Decision]) -> bytes:
    """Return a CSV table with a row per decision and the probability of each action."""
    actions = list(decisions[0].probabilities) if decisions else []
    head = ["at_s", "left_s", "steps", "chosen", *(f"p {action}" for action in actions), "refused"]
    lines = []
    for each in decisions:
        chances = [each.probabilities[action] for action in actions]
        lines.append([each.at_s, each.left_s, each.steps, each.chosen, *chances, ", ".join(each.refused)])
    return _csv([head, *lines])


def _csv(lines: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode()


OLD_LINE = ("\ntold = false\n", "\nexternal_allocation = false\n")
"""A line of `train.toml` as older versions wrote it, and as it is now."""
LAST = ("time", "steps", "failed")
"""Outcomes of an epoch after which training is over."""


class TrainingRun:
    """A training run in a folder; a stopped run there is resumed."""

    def __init__(
        self,
        config: TrainConfig,
        folder: Path,
        command: str,
        adaptation: GrowthPolicy | None = None,
        decided_by: str = "",
    ) -> None:
        """Prepare a run; `adaptation` is the growth policy, if any, and `decided_by` its name."""
        if config.external_allocation:
            raise ConfigError(
                "external_allocation: no cluster sets the allocation of this run; leave it out, and list it"
            )
        self.config = config
        self.folder = folder
        self.command = command
        self.adaptation = adaptation
        self.decided_by = decided_by or ("" if adaptation is None else type(adaptation).__name__)
        self.course = AllocationCourse(config, Decider(config, adaptation))
        self.trainer: Trainer | None = None

    @property
    def result(self) -> Path:
        """The file of the result."""
        return self.folder / "result.json"

    @property
    def checkpoint(self) -> Path:
        """The file of the checkpoint."""
        return self.folder / "checkpoint.pt"

    def epochs(self, on_step: Callable[[], None] | None = None) -> Iterator[Epoch]:
        """Train to the end of the budget; yield each epoch when it is over, earlier ones first.

        Ctrl-C, SIGTERM and SIGHUP stop it after the current step and save a checkpoint.
        """
        with folder_lock(self.folder), stopping() as stop:
            self._refuse_another()
            trainer = self.trainer = self._begin()
            self._claim()
            yield from (Epoch(**row) for row in self.course.turns.rows)
            if not self.result.exists():
                yield from self._train(trainer, Watch(self, stop, on_step))
                self._finish(trainer)

    def _train(self, trainer: Trainer, watch: "Watch") -> Iterator[Epoch]:
        try:
            while not self._over(trainer):
                self.course.before_epoch(trainer)
                epoch = trainer.epoch(
                    until_s=self.config.until_s,
                    until_steps=self.config.budget_steps,
                    interrupted=self.course.interrupted if self.config.allocation else None,
                    on_step=watch,
                )
                self._check_budget(trainer, epoch)
                if trainer.progress.epoch_steps or epoch.ended not in ("time", "steps"):
                    self.course.turns.rows.append(_row(epoch))
                    watch.save_if_due()
                    yield epoch
                if epoch.ended in LAST:
                    break
        except KeyboardInterrupt:
            if watch.between_steps:
                self.save()
            raise
        self.save()

    @property
    def changes(self) -> list[MadeChange]:
        """The changes of the network so far."""
        return self.trainer.history if self.trainer is not None else []

    @property
    def decisions(self) -> list[Decision]:
        """The decisions of the growth policy so far."""
        return self.course.turns.decided if self.adaptation is not None else []

    def _over(self, trainer: Trainer) -> bool:
        """Return whether training is over; an epoch that a stop left open comes first."""
        progress, config, rows = trainer.progress, self.config, self.course.turns.rows
        if rows and rows[-1]["ended"] in LAST:
            return True
        if progress.epoch_steps or not progress.steps:
            return False
        enough = config.epochs is not None and progress.epochs >= config.epochs
        return enough or progress.steps == config.budget_steps or not trainer.clock.fits(config.until_s)

    def _check_budget(self, trainer: Trainer, epoch: Epoch) -> None:
        """Raise if not even one batch fitted; a wall clock shows that only afterwards."""
        if epoch.ended == "time" and trainer.progress.steps <= 1 and epoch.at_s > self.config.until_s:
            raise InputError(
                f"budget_s: {self.config.budget_s:g} s is shorter than the first batch ({epoch.at_s:.2g} s "
                "have passed); give more time, or a smaller batch_size"
            )

    # ── the folder ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _file(self) -> Path:
        return self.folder / "train.toml"

    def _refuse_another(self) -> None:
        """Raise if the folder holds a run with another configuration."""
        if not (self.checkpoint.exists() or self.result.exists()):
            return
        try:
            there = self._file.read_text("utf-8").replace(*OLD_LINE)
        except (OSError, UnicodeDecodeError):
            there = ""
        if there != self._asked():
            raise InputError(
                f"{self.folder}: another run is there ({self._file} differs); give another folder with "
                "--out, or --again to train anew"
            )

    def _claim(self) -> None:
        write_file(self._file, self._asked())

    def _asked(self) -> str:
        """Return all settings that a run depends on, as text."""
        who = f"\n# decided by {self.decided_by}\n" if self.decided_by else ""
        return dump(self.config) + who

    def _begin(self) -> Trainer:
        config = self.config
        setup = config.setup if config.profile is None else config.setup.at_once
        trainer = setup.trainer(self._clock(), seed=config.seed, length=config.epoch)
        if not self.checkpoint.exists():
            self.course.decider.check(trainer)  # before a look at the clock, which starts it
        if not trainer.clock.fits(config.until_s):
            raise InputError(f"budget_s: {config.budget_s:g} s is shorter than one batch; give more time")
        if self.checkpoint.exists():
            self.course.turns = DecisionProgress(**load(self.checkpoint, trainer)["turns"])
        return trainer

    def _clock(self) -> TrainingClock:
        config = self.config
        if config.profile is None:
            return WallClock(device(config.setup.device))
        tree = read_tree(config.profile)
        seconds = tree.details.get("seconds_per_step")
        if seconds is None:
            raise InputError(
                f"{config.profile}: says nothing of seconds per step; give a tree that rota recorded"
            )
        asked, ours = tree.details["asked"]["setup"], config.setup
        for name, recorded, wanted in (
            ("model", asked["model"], ours.model),
            ("data", replace(ours, data=asked["data"]).learns_from, ours.learns_from),
            ("size", asked["size"], ours.size),
            ("storage_mb_s", asked.get("storage_mb_s"), ours.storage_mb_s),
        ):
            if recorded != wanted:
                raise InputError(
                    f"profile: {config.profile} was recorded with {name} {recorded!r}, this is {wanted!r}; "
                    "give one that was recorded with the same"
                )
        size = asked["hyper"]["batch_size"]
        return ProfiledClock({(structure, size): s for structure, s in seconds.items()})

    def save(self) -> None:
        """Write a checkpoint, from which the same command resumes, and the tables."""
        if self.trainer is None:
            return
        turns = {name: getattr(self.course.turns, name) for name in DecisionProgress.__slots__}
        save(self.checkpoint, self.trainer, turns=turns)
        write_file(self.folder / "epochs.csv", epochs_csv(self.course.turns.rows))
        if self.adaptation is not None:
            write_file(self.folder / "decisions.csv", decisions_csv(self.decisions))

    def _finish(self, trainer: Trainer) -> None:
        config, task = self.config, trainer.task
        where = description(device(config.setup.device), config.setup.threads)
        made = provenance(device=where, seed=config.seed, command=self.command, libraries=LIBRARIES)
        result = {
            "validation": task.evaluate(trainer.network),
            "test": task.evaluate(trainer.network, "test"),
            "epochs": trainer.progress.epochs,
            "steps": trainer.progress.steps,
            "seconds": trainer.clock.now_s(),
            "changes": [{"steps": steps, "change": str(change)} for steps, change in trainer.history],
            "decided_by": self.decided_by,
            "decisions": [asdict(each) for each in self.decisions],
            "failure": self.course.turns.rows[-1]["failure"] if self.course.turns.rows else "",
            "structure": trainer.structure.as_json(),
            "provenance": made.to_json(),
        }
        write_file(self.result, json.dumps(_plain(result), indent=2, allow_nan=False) + "\n")


class Watch:
    """A callback after every step: it reports progress, saves when due, and stops on request."""

    def __init__(self, run: TrainingRun, stop: StopRequest, on_step: Callable[[], None] | None) -> None:
        self._run, self._stop, self._on_step = run, stop, on_step
        self._saved_s = time.monotonic()
        self.between_steps = False
        """Whether the stop came between two steps."""

    def __call__(self) -> None:
        if self._on_step is not None:
            self._on_step()
        self.save_if_due()
        if self._stop.asked:
            self.between_steps = True
            raise KeyboardInterrupt

    def save_if_due(self) -> None:
        """Save a checkpoint if the last one is old enough."""
        if time.monotonic() - self._saved_s > self._run.config.checkpoint_every_s:
            self._run.save()
            self._saved_s = time.monotonic()


def read_result(file: Path) -> dict[str, Any]:
    """Return the result of a run."""
    try:
        found = json.loads(file.read_text("utf-8"))
        if not {"validation", "test", "failure"} <= set(found):
            raise ValueError("not a result")
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{file}: cannot be read ({error}); train anew with --again") from None
    result: dict[str, Any] = found
    return result


def _plain(value: Any) -> Any:
    """Replace numbers that JSON lacks (NaN, infinity) by None."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _row(epoch: Epoch) -> dict[str, Any]:
    return {name: getattr(epoch, name) for name in Epoch.__slots__}
