"""A timeline that does not stay in memory: what is too much of it waits in a file."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from rota.core.population.events import Event
from rota.execution.entries import event_records, parse_events
from rota.execution.journal import NotWritten
from rota.execution.orders import ENCODE

MOST = 10_000
"""Events that are kept in memory."""
NEW = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL


class Spool:
    """All events of a run, in their order. They can be read as often as one likes until it is closed.

    The file is for the eyes of its owner only, and goes when it is closed.
    """

    def __init__(self, file: Path, most: int = MOST) -> None:
        self._file, self._most = file, most
        self._there = 0
        self._recent: list[Event] = []
        self.close()  # of a process that died: all of it comes again from the journal

    def take(self, events: list[Event]) -> None:
        """Take events over: the list is empty afterwards."""
        self._recent += events
        events.clear()
        if len(self._recent) > self._most:
            self._put_away()

    def close(self) -> None:
        """Forget all of it."""
        self._there = 0
        self._recent.clear()
        self._file.unlink(missing_ok=True)

    def _put_away(self) -> None:
        try:
            how = os.O_WRONLY | os.O_APPEND if self._there else NEW
            with os.fdopen(os.open(self._file, how, 0o600), "w", encoding="utf-8") as stream:
                stream.writelines(f"{ENCODE(record)}\n" for record in event_records(self._recent))
        except OSError as error:
            reason = error.strerror
            raise NotWritten(
                f"{self._file}: cannot be written ({reason}); make room, then go on with --resume"
            ) from None
        self._there += len(self._recent)
        self._recent.clear()

    def __iter__(self) -> Iterator[Event]:
        if self._there:
            with self._file.open(encoding="utf-8") as stream:
                for line in stream:
                    yield from parse_events([json.loads(line)])
        yield from self._recent

    def __len__(self) -> int:
        return self._there + len(self._recent)
