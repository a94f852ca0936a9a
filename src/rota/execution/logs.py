"""Files that workers print to: for the eyes of their owner, and longer with each worker of a slot."""

import os
from pathlib import Path

from rota.execution.journal import NotWritten

TAIL = 2000
"""Characters of what a worker that died printed last."""
BYTES = 4
"""That a character may have."""


def opened(log: Path) -> int:
    """A descriptor to print to, behind what is there."""
    try:
        return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise NotWritten(f"{log}: cannot be written ({error.strerror}); make room, then try again") from None


def last_line(text: str) -> str:
    """Return the last line that is not empty: of a traceback, the error."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "?")


def last_of(log: Path, most: int = TAIL) -> str:
    """The last characters; nothing if it cannot be read."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - BYTES * most))
            return stream.read().decode("utf-8", "replace")[-most:]
    except OSError:
        return ""
