"""The command as it was typed: results name it, so that they can be made again."""

import shlex
from collections.abc import Sequence
from contextvars import ContextVar

WORDS: ContextVar[Sequence[str]] = ContextVar("WORDS", default=())
"""All that came after `rota`."""


def typed() -> str:
    """The command, but for what it says about results that were there before."""
    return shlex.join(["rota", *(word for word in WORDS.get() if word != "--replace")])
