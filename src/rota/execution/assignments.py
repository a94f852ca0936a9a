"""Messages between a controller and its workers: one line of JSON each.

An assignment names a checkpoint to make and the one to start from. The answer says that it was made, or why
not. An assignment that is sent twice is answered twice; the second time from the checkpoint, without
training.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rota.core.population.events import Hyper

ENCODE = json.JSONEncoder(separators=(",", ":")).encode
CANONICAL = json.JSONEncoder(sort_keys=True).encode


class CheckpointInfo(NamedTuple):
    """The identity of a checkpoint, and how it is made."""

    trial: int
    version: int
    """1 after the first interval that the trial reported, 2 after the second …"""
    steps: int
    """Number of steps of the interval that ends with it."""
    hyper: Hyper
    """The hyper-parameters of that interval."""
    changes: tuple[str, ...]
    """The changes made to the network since the first step."""
    digest: str
    """A digest of all that it follows from: equal names with different contents differ in it."""


def checkpoint_info(
    trial: int,
    version: int,
    steps: int,
    hyper: Hyper,
    changes: tuple[str, ...],
    source: CheckpointInfo | None,
    run: str,
) -> CheckpointInfo:
    """Describe the checkpoint after so many steps from `source`, or from the first step if that is None."""
    before = source.digest if source else run
    recipe = CANONICAL([before, trial, version, steps, dict(hyper), list(changes)])
    return CheckpointInfo(trial, version, steps, hyper, changes, hashlib.sha256(recipe.encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class Assignment:
    """One interval for a worker to train."""

    make: CheckpointInfo
    source: CheckpointInfo | None = None
    """The checkpoint to start from; None: the first step."""
    earlier: tuple[CheckpointInfo | None, ...] = ()
    """What the source was made from, what that was made from …; None: the first step. If the source is
    damaged, training restarts from the newest intact one."""
    over: tuple[int, int] | None = None
    """Trial and version of a checkpoint that is not needed; its file may be overwritten."""

    def fields(self) -> dict[str, Any]:
        """Return the assignment as plain values, as `assignment_from` reads them."""
        return {"make": self.make, "source": self.source, "earlier": self.earlier, "over": self.over}

    def line(self) -> bytes:
        """Return the assignment as a line of JSON."""
        return _line(self.fields())


@dataclass(frozen=True, slots=True)
class IntervalSeconds:
    """The seconds of an interval, by what they were spent on."""

    loading_s: float = 0.0
    training_s: float = 0.0
    evaluating_s: float = 0.0
    saving_s: float = 0.0

    @property
    def computing_s(self) -> float:
        """Seconds of training and evaluation."""
        return self.training_s + self.evaluating_s

    @property
    def whole_s(self) -> float:
        """Seconds of the whole interval, loading and saving included."""
        return self.loading_s + self.computing_s + self.saving_s


@dataclass(frozen=True, slots=True)
class Done:
    """The answer that a checkpoint was made."""

    digest: str
    """The digest of the checkpoint."""
    metric: float
    """The evaluated metric; NaN if nothing is measured or the metric is infinite."""
    spent: IntervalSeconds = field(default_factory=IntervalSeconds)
    again: bool = False
    """Whether the checkpoint existed already, from a controller that died before it read the answer."""
    ended: int | None = None
    """Number of steps trained when the trial ended by itself; None if it can continue."""

    def record(self) -> dict[str, Any]:
        """Return the answer as plain values, as `parse_done` reads them."""
        times = [getattr(self.spent, name) for name in IntervalSeconds.__slots__]
        more = {} if self.ended is None else {"ended": self.ended}
        return {"digest": self.digest, "metric": self.metric, "spent": times, "again": self.again, **more}


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """The answer that an assignment failed."""

    digest: str
    why: str
    """The traceback."""
    no_room: bool = False
    """Whether its checkpoint could not be written, which is not the trial's fault."""
    lost: bool = False
    """Whether neither the source nor an earlier checkpoint can be read, which is not the trial's fault."""


Answer = Done | FailedAnswer


def answer_line(answer: Answer) -> bytes:
    """Return an answer as a line of JSON."""
    if isinstance(answer, Done):
        return _line(answer.record())
    return _line({name: getattr(answer, name) for name in FailedAnswer.__slots__})


def parse_assignment(line: bytes) -> Assignment:
    """Return the assignment in a line of JSON."""
    return assignment_from(json.loads(line))


def assignment_from(found: Mapping[str, Any]) -> Assignment:
    """Return the assignment with these fields."""
    make = _made(found["make"])
    if make is None:
        raise ValueError("an assignment without a checkpoint to make")
    over = found["over"] and (found["over"][0], found["over"][1])
    return Assignment(make, _made(found["source"]), tuple(map(_made, found["earlier"])), over)


def parse_done(found: Mapping[str, Any]) -> Done:
    """Return the answer of a record; an infinite metric becomes NaN."""
    metric = float(found["metric"])
    metric = metric if math.isfinite(metric) else math.nan
    return Done(
        found["digest"], metric, IntervalSeconds(*found["spent"]), bool(found["again"]), found.get("ended")
    )


def _made(found: Any) -> CheckpointInfo | None:
    if found is None:
        return None
    trial, version, steps, hyper, changes, digest = found
    return CheckpointInfo(trial, version, steps, hyper, tuple(changes), digest)


def _line(value: Any) -> bytes:
    return ENCODE(value).encode() + b"\n"
