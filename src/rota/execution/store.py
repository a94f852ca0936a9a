"""Where workers keep checkpoints, and get them from."""

from typing import Protocol

from rota.execution.checkpoints import Kept
from rota.execution.orders import Done, Made


class Store(Protocol):
    """`Checkpoints`, or whatever brings them there and back."""

    def read(self, which: Made) -> Kept:
        """Exactly this one; Damaged if that is not possible."""

    def write(self, answer: Done, which: Made, content: bytes, over: tuple[int, int] | None = None) -> None:
        """NotWritten if there is no room."""
