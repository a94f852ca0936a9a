"""Checkpoints that nobody needs any more, until they may go.

A power cut may take back the newest entries of a journal, and with them the knowledge that a checkpoint is
not needed any more. So nothing is deleted or written over before the journal that says so is on the disk.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from rota.core.disk import flush_to_disk
from rota.execution.checkpoints import Checkpoints, Name
from rota.execution.journal import Journal

SYNC_EVERY_S = 2.0
"""A power cut takes back at most what was reported in so many seconds, and while the disk took it in."""
MANY = 256
"""Or as soon as so many files wait for it: where trials report often they would become too many."""
LEAST = 16
"""Files that are kept at least, to be written over: that costs less than to delete some and make others."""


class Spares:
    """Brings a run to the disk every now and then, beside its controller, and then lets checkpoints go."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        journal: Journal,
        every_s: float | None = None,
        tick: Callable[[], float] = time.monotonic,
    ) -> None:
        self._checkpoints, self._journal, self._tick = checkpoints, journal, tick
        self._every_s = SYNC_EVERY_S if every_s is None else every_s
        self._thread = ThreadPoolExecutor(1, "sync")
        self._sync: Future[None] | None = None
        self._next_s = tick() + self._every_s
        self._synced = 0
        """Entries that were in the journal when it was last brought to the disk."""
        self._unneeded: list[Name] = []
        """What the journal says is not needed any more; the disk may not know yet."""
        self._syncing: list[Name] = []
        """What the disk will know once the sync that is under way is over."""
        self._free: list[Name] = []
        self._asked, self._spare = 0, LEAST
        """How many were asked for since the last sync; how many are kept, as many as were then."""

    def add(self, names: Iterable[Name]) -> None:
        """Take over what the journal says is not needed any more. It must have been written there before."""
        self._unneeded += names

    def take(self) -> Name | None:
        """One that may be written over; None if there is none."""
        self._asked += 1
        return self._free.pop() if self._free else None

    def tidy(self) -> None:
        """Delete what may go; begin a sync if it is time. Returns at once."""
        if self._sync is not None and self._sync.done():
            self._end_sync()
        due = self._tick() >= self._next_s or len(self._unneeded) >= MANY
        if self._sync is None and due and self._journal.count > self._synced:
            self._begin_sync()
        self._delete(self._spare)

    def settle(self) -> None:
        """Bring all of it to the disk, and delete what may go. Returns when that is done."""
        self._end_sync()
        self._begin_sync()
        self._end_sync()
        self._delete(0)

    def __enter__(self) -> "Spares":
        return self

    def __exit__(self, *error: object) -> None:
        """Wait for the sync that is under way. Nothing more is deleted."""
        self._thread.shutdown()

    def _begin_sync(self) -> None:
        self._synced = self._journal.count
        self._syncing, self._unneeded = self._unneeded, []
        self._sync = self._thread.submit(self._flush, self._synced)

    def _flush(self, count: int) -> None:
        """Bring checkpoints to their disk, if that is another one than the journal's, then the journal."""
        folder, beside = self._checkpoints.folder, self._journal.file.parent
        with suppress(OSError):  # a folder that is not there is noticed by whoever needs it
            if folder.stat().st_dev != beside.stat().st_dev:
                flush_to_disk(folder)
        self._journal.sync(count)

    def _end_sync(self) -> None:
        if self._sync is not None:
            self._sync.result()
            self._free += self._syncing
            self._sync, self._syncing = None, []
            self._spare, self._asked = max(LEAST, self._asked), 0
            self._next_s = self._tick() + self._every_s

    def _delete(self, spare: int) -> None:
        self._checkpoints.prune(self._free[spare:])
        del self._free[spare:]
