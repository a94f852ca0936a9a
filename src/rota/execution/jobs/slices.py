"""What a controller of jobs and a worker say to each other: a line of JSON each.

A slice is some iterations of each job of a unit, on each of the slots of the unit. The worker of each slot
is given the same jobs, each with a rank of its own. The answer says for each job how it went.
"""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from rota.execution.orders import ENCODE, Order, order_of

SHARES, PARTS = "shares", "parts"
"""By these an order and an answer are told from others."""


class Share(NamedTuple):
    """What the worker of one slot does for one job."""

    order: Order
    """From which checkpoint to which; its steps are iterations."""
    kind: str
    """What is trained."""
    rank: int = 0
    size: int = 1
    """How many slots train it together."""
    meeting: str = ""
    """A file in which they meet, if there are several."""
    room: int = 0
    """Of the slots, those that were idle and are lent for now."""
    at_s: float = 0.0
    """The time of the run."""
    told: tuple[tuple[int, float], ...] = ()
    """Room and time of the slices that made the source of the order and what came before it: what is damaged
    is made again so."""


@dataclass(frozen=True, slots=True)
class Slice:
    """An order."""

    shares: tuple[Share, ...]

    def line(self) -> bytes:
        shares = [{**share._asdict(), "order": share.order.fields()} for share in self.shares]
        return ENCODE({SHARES: shares}).encode() + b"\n"


def parse_slice(line: bytes) -> Slice:
    found = json.loads(line)[SHARES]
    return Slice(tuple(_share(each) for each in found))


def _share(found: dict[str, Any]) -> Share:
    told = tuple((room, at_s) for room, at_s in found["told"])
    return Share(**{**found, "order": order_of(found["order"]), "told": told})


class Seconds(NamedTuple):
    """Where the time of a part went."""

    fetch_s: float = 0.0
    compute_s: float = 0.0
    exchange_s: float = 0.0
    waiting_s: float = 0.0
    """For others on the same slot."""
    restore_s: float = 0.0
    """Before the first iteration: the checkpoint, the network, the meeting."""
    save_s: float = 0.0

    @property
    def training_s(self) -> float:
        return self.fetch_s + self.compute_s + self.exchange_s + self.waiting_s


class Took(NamedTuple):
    """How it went with one job."""

    digest: str
    """Of what was to be made."""
    seconds: Seconds = Seconds()
    metric: float = float("nan")
    """The loss of the last batch, or whatever the job says of itself."""
    why: str = ""
    """Why it could not be done: a traceback."""
    no_room: bool = False
    """There is no room for its checkpoint, which has nothing to do with the job."""
    again: bool = False
    """It was there already."""
    notes: tuple[dict[str, Any], ...] = ()
    """What a job wants to be kept: plain values."""
    lost: bool = False
    """Nothing that it could go on from can be read, which has nothing to do with the job."""


@dataclass(frozen=True, slots=True)
class Sliced:
    """An answer: as many parts as the slice had jobs."""

    parts: tuple[Took, ...]

    def line(self) -> bytes:
        return ENCODE({PARTS: self.parts}).encode() + b"\n"


def sliced(found: Any) -> Sliced:
    """From its record."""
    return Sliced(tuple(_took(*each) for each in found))


def _took(digest: str, seconds: list[float], *rest: Any) -> Took:
    metric, why, no_room, again, notes, lost = rest
    return Took(digest, Seconds(*seconds), float(metric), why, no_room, again, tuple(notes), lost)
