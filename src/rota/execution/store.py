"""Where workers keep checkpoints, and get them from."""

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from rota.execution.checkpoints import Damaged, Kept
from rota.execution.orders import Done, Made, Order

log = logging.getLogger(__name__)


class Store(Protocol):
    """`Checkpoints`, or whatever brings them there and back."""

    def read(self, which: Made) -> Kept:
        """Exactly this one; Damaged if that is not possible."""

    def write(self, answer: Done, which: Made, content: bytes, over: tuple[int, int] | None = None) -> None:
        """NotWritten if there is no room."""


class Lost(Exception):
    """Nothing that an order could go on from can be read."""


class Start(NamedTuple):
    """Where a worker starts, so that it gets to the source of an order."""

    content: bytes | None
    """To be loaded; None: the beginning."""
    again: tuple[Made, ...]
    """What has to be trained again after that, in this order; the last of them is the source."""


def earlier_than(
    lost: Made, sources: Mapping[str, Made | None], is_intact: Callable[[Made], bool]
) -> tuple[Made | None, ...]:
    """What a checkpoint was made from, what that was made from … back to an intact one or the beginning.

    `sources` has for the digest of each what it was made from; None: the beginning.
    """
    found: list[Made | None] = [sources[lost.digest]]
    while (last := found[-1]) is not None and not is_intact(last):
        found.append(sources[last.digest])
    return tuple(found)


def start_of(order: Order, store: Store) -> Start:
    """Find the newest checkpoint that can be gone on from; Lost if there is none."""
    again: list[Made] = []
    damages: list[str] = []
    for which in (order.source, *order.earlier):
        if which is None:
            return Start(None, tuple(again[::-1]))
        try:
            return Start(store.read(which).content, tuple(again[::-1]))
        except Damaged as damage:
            log.warning("%s; made again from the one before it", damage)
            damages.append(str(damage))
            again.append(which)
    raise Lost("; ".join(damages))
