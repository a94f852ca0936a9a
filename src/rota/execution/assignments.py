"""Messages between a controller and its workers: one line of JSON each."""

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
    """A checkpoint: which one it is, and how it came about."""

    trial: int
    version: int
    """1 after the first part that the trial reported, and so on."""
    steps: int
    """Of the part that ended with it."""
    hyper: Hyper
    """What that part was trained with."""
    changes: tuple[str, ...]
    """What had been done to the network since the beginning."""
    digest: str
    """Of all that it follows from. Another checkpoint of that name has another."""


def made(
    trial: int,
    version: int,
    steps: int,
    hyper: Hyper,
    changes: tuple[str, ...],
    source: CheckpointInfo | None,
    run: str,
) -> CheckpointInfo:
    """What comes of so many steps from a checkpoint; from the beginning if there is none."""
    before = source.digest if source else run
    recipe = CANONICAL([before, trial, version, steps, dict(hyper), list(changes)])
    return CheckpointInfo(trial, version, steps, hyper, changes, hashlib.sha256(recipe.encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class Assignment:
    """Train one part."""

    make: CheckpointInfo
    source: CheckpointInfo | None = None
    """What it starts from; None: from the beginning."""
    earlier: tuple[CheckpointInfo | None, ...] = ()
    """What the source was made from, what that was made from …; None: the beginning. If the source is
    damaged, the newest of these that is intact is gone on from."""
    over: tuple[int, int] | None = None
    """Trial and version of a checkpoint that nobody needs: its file may be written over."""

    def fields(self) -> dict[str, Any]:
        return {"make": self.make, "source": self.source, "earlier": self.earlier, "over": self.over}

    def line(self) -> bytes:
        return _line(self.fields())


@dataclass(frozen=True, slots=True)
class IntervalSeconds:
    """Where the seconds of a part went."""

    loading_s: float = 0.0
    training_s: float = 0.0
    evaluating_s: float = 0.0
    saving_s: float = 0.0

    @property
    def computing_s(self) -> float:
        return self.training_s + self.evaluating_s

    @property
    def whole_s(self) -> float:
        return self.loading_s + self.computing_s + self.saving_s


@dataclass(frozen=True, slots=True)
class Done:
    """The checkpoint is there."""

    digest: str
    """Of what was made."""
    metric: float
    """How good it is; NaN if nothing is measured, or it is infinite."""
    spent: IntervalSeconds = field(default_factory=IntervalSeconds)
    again: bool = False
    """It was there already: the controller that had ordered it died before it could hear of it."""
    ended: int | None = None
    """Steps that were trained when the trial had nothing more to train; None if it goes on."""

    def record(self) -> dict[str, Any]:
        times = [getattr(self.spent, name) for name in IntervalSeconds.__slots__]
        more = {} if self.ended is None else {"ended": self.ended}
        return {"digest": self.digest, "metric": self.metric, "spent": times, "again": self.again, **more}


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """It was tried, and something was raised."""

    digest: str
    why: str
    """The traceback."""
    no_room: bool = False
    """There is no room for its checkpoint, which has nothing to do with the trial."""
    lost: bool = False
    """Neither its source nor any of the earlier ones can be read, which has nothing to do with it either."""


Answer = Done | FailedAnswer


def answer_line(answer: Answer) -> bytes:
    if isinstance(answer, Done):
        return _line(answer.record())
    return _line({name: getattr(answer, name) for name in FailedAnswer.__slots__})


def parse_order(line: bytes) -> Assignment:
    return order_of(json.loads(line))


def order_of(found: Mapping[str, Any]) -> Assignment:
    """From its fields."""
    make = _made(found["make"])
    if make is None:
        raise ValueError("an order without what is to be made")
    over = found["over"] and (found["over"][0], found["over"][1])
    return Assignment(make, _made(found["source"]), tuple(map(_made, found["earlier"])), over)


def done(found: Mapping[str, Any]) -> Done:
    """From its record. What is infinite says no more than what is not a number."""
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
