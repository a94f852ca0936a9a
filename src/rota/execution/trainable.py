"""What a worker trains: the seam between rota and whatever learns."""

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rota.core.errors import InputError
from rota.core.population.decisions import Hyper

NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


class Trainable(Protocol):
    """One trial at a time, of all that a worker is given one after the other.

    Made once per worker, so that it can keep what all trials need. What comes of it must follow from its
    settings, the trial and what it is told alone: it may happen on any worker, and twice.
    """

    def begin(self, trial: int) -> None:
        """Be this trial, before its first step."""

    def load(self, content: bytes) -> None:
        """Be what was saved, whichever trial that was."""

    def save(self) -> bytes:
        """All that `load` needs. It must not be pickled."""

    def train(self, steps: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        """So many steps with these hyper-parameters, and the network as these changes make it."""

    def evaluate(self) -> float:
        """How good it is; more is better. NaN if nothing is measured."""


Factory = Callable[[Mapping[str, Any], int], Trainable]
"""Settings and the seed of the run → what trains."""


def factory(name: str) -> Factory:
    """`module:function`; an error that says so if there is no such thing."""
    check_name(name)
    module, _, function = name.partition(":")
    try:
        found: Factory = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"trial {name}: {error}; name a function as module:function, and install what it needs "
            f'(rota\'s own: pip install "rota[train]")'
        ) from error
    return found


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise InputError(f"trial {name!r}: not the name of a function; write module:function")
