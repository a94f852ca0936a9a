"""Checkpoints of a run: their files, where workers keep them, and when they may be deleted."""

import errno
import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from rota.core.errors import InputError
from rota.core.files import flush_to_disk
from rota.execution.assignments import Assignment, CheckpointInfo, Done, done
from rota.execution.journal import Journal, NotWritten

MAGIC = b"rota part 1"
ENDING = ".part"
OWNER = ".run"
"""A file that says which run the checkpoints of a folder belong to."""
OURS = re.compile(r"(\d+)-(\d+)(\.part|\.\d+\.partial)", re.ASCII)
"""Names of checkpoints, and of those that are being written."""
FIXES = {errno.ENOENT: "bring its folder back", errno.EISDIR: "move what is there away"}
"""What helps when a checkpoint cannot be written; else there is no room."""

Name = tuple[int, int]
"""Of a checkpoint: trial or job, and version."""


class CheckpointContents(NamedTuple):
    """What a checkpoint holds."""

    answer: Done
    """What was answered when it was made."""
    content: bytes
    """What the trial wrote."""


class DamagedCheckpoint(Exception):
    """A checkpoint is not there, torn, or not the one that was asked for."""


class MissingStorage(InputError):
    """The checkpoints of a run are not where they were, which is no trial's fault."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder}: the checkpoints of this run are not there (is their storage mounted?); bring them "
            "back and go on with --resume, or train again what they held: --resume DIR --salvage"
        )


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Those of one run, in a folder for the eyes of its owner only."""

    folder: Path

    def file(self, trial: int, version: int) -> Path:
        return self.folder / f"{trial:d}-{version:d}{ENDING}"

    def claim(self, run: str, needed: Iterable[Name] = (), *, anew: bool = False) -> None:
        """Be the folder of a run; it is made if nothing that it should hold is needed.

        Raises MissingStorage if checkpoints are needed and none of them is there, unless they are to be made
        anew; InputError if the folder is another run's.
        """
        owner = self._owner()
        if owner == run:
            return
        if owner is not None:
            raise InputError(
                f"{self.folder}: holds the checkpoints of another run; bring back those of this one"
            )
        names = list(needed)
        if names and not anew and not any(self.file(*name).exists() for name in names):
            raise MissingStorage(self.folder)
        if self.folder.is_symlink() and not self.folder.exists():
            raise InputError(
                f"{self.folder}: points to {self.folder.readlink()}, which is not there; mount it, or remove "
                "the link"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial = self.folder / f"{OWNER}.partial"
            self._write(partial, run.encode())
            partial.replace(self.folder / OWNER)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be made ({error.strerror}); choose another") from None

    def is_of(self, run: str) -> bool:
        """Whether the folder is there, and of that run."""
        return self._owner() == run

    def _owner(self) -> str | None:
        """The name of a run; None if none is there, or it is torn."""
        try:
            name = (self.folder / OWNER).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        return name if name.isprintable() and name else None

    def names(self) -> Iterator[Name]:
        """Those that are there."""
        return (name for name, file in self._files() if file.suffix == ENDING)

    def _files(self) -> Iterator[tuple[Name, Path]]:
        """Files of ours: whatever else is in the folder is left alone."""
        if not self.folder.is_dir():
            return
        with os.scandir(self.folder) as found:
            for entry in found:
                ours = OURS.fullmatch(entry.name)
                if ours and entry.is_file(follow_symlinks=False):
                    yield (int(ours[1]), int(ours[2])), Path(entry.path)

    def write(self, answer: Done, which: CheckpointInfo, content: bytes, over: Name | None = None) -> None:
        """By rename, with a checksum. To write over a file that nobody needs is quicker than to make one."""
        body = json.dumps(answer.record()).encode() + b"\n" + content
        file = self.file(which.trial, which.version)
        partial = file.with_suffix(f".{os.getpid()}.partial")
        try:
            if over is not None:
                with suppress(FileNotFoundError):
                    self.file(*over).rename(partial)
            self._write(partial, b"\n".join([MAGIC, hashlib.sha256(body).hexdigest().encode(), body]))
            partial.replace(file)
        except OSError as error:
            partial.unlink(missing_ok=True)
            fix = FIXES.get(error.errno or 0, "make room")
            raise NotWritten(f"{file}: cannot be written ({error.strerror}); {fix}") from None

    def _write(self, file: Path, whole: bytes) -> None:
        """Over what is there: to empty a file first makes some file systems write it to the disk at once."""
        stream, at = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600), 0
        try:
            while at < len(whole):
                at += os.write(stream, whole[at:] if at else whole)
            if os.fstat(stream).st_size > at:
                os.ftruncate(stream, at)
        finally:
            os.close(stream)

    def read(self, which: CheckpointInfo) -> CheckpointContents:
        """Exactly this one; Damaged if that is not possible."""
        file = self.file(which.trial, which.version)
        try:
            magic, checksum, body = file.read_bytes().split(b"\n", 2)
        except OSError as error:
            raise DamagedCheckpoint(f"{file}: {error.strerror}") from None
        except ValueError:
            raise DamagedCheckpoint(f"{file}: torn") from None
        if magic != MAGIC or hashlib.sha256(body).hexdigest().encode() != checksum:
            raise DamagedCheckpoint(f"{file}: torn, or not a checkpoint")
        about, _, content = body.partition(b"\n")
        answer = done(json.loads(about))
        if answer.digest != which.digest:
            raise DamagedCheckpoint(f"{file}: of another run, or made in another way")
        return CheckpointContents(answer, content)

    def is_intact(self, which: CheckpointInfo) -> bool:
        try:
            self.read(which)
        except DamagedCheckpoint:
            return False
        return True

    def prune(self, unused: Iterable[Name]) -> None:
        for name in unused:
            self.file(*name).unlink(missing_ok=True)

    def sweep(self, keep: Callable[[Name], bool]) -> None:
        """Delete what a controller that died left behind, but what is to be kept; nothing through a link."""
        if self.folder.is_symlink():
            return
        for name, file in list(self._files()):
            if file.suffix != ENDING or not keep(name):
                file.unlink(missing_ok=True)


log = logging.getLogger(__name__)


class Store(Protocol):
    """`Checkpoints`, or whatever brings them there and back."""

    def read(self, which: CheckpointInfo) -> CheckpointContents:
        """Exactly this one; Damaged if that is not possible."""

    def write(
        self, answer: Done, which: CheckpointInfo, content: bytes, over: tuple[int, int] | None = None
    ) -> None:
        """NotWritten if there is no room."""


class LostCheckpoint(Exception):
    """Nothing that an order could go on from can be read."""


class Start(NamedTuple):
    """Where a worker starts, so that it gets to the source of an order."""

    content: bytes | None
    """To be loaded; None: the beginning."""
    again: tuple[CheckpointInfo, ...]
    """What has to be trained again after that, in this order; the last of them is the source."""


def earlier_than(
    lost: CheckpointInfo,
    sources: Mapping[str, CheckpointInfo | None],
    is_intact: Callable[[CheckpointInfo], bool],
) -> tuple[CheckpointInfo | None, ...]:
    """What a checkpoint was made from, what that was made from … back to an intact one or the beginning.

    `sources` has for the digest of each what it was made from; None: the beginning.
    """
    found: list[CheckpointInfo | None] = [sources[lost.digest]]
    while (last := found[-1]) is not None and not is_intact(last):
        found.append(sources[last.digest])
    return tuple(found)


def start_of(order: Assignment, store: Store) -> Start:
    """Find the newest checkpoint that can be gone on from; Lost if there is none."""
    again: list[CheckpointInfo] = []
    damages: list[str] = []
    for which in (order.source, *order.earlier):
        if which is None:
            return Start(None, tuple(again[::-1]))
        try:
            return Start(store.read(which).content, tuple(again[::-1]))
        except DamagedCheckpoint as damage:
            log.warning("%s; made again from the one before it", damage)
            damages.append(str(damage))
            again.append(which)
    raise LostCheckpoint("; ".join(damages))


SYNC_EVERY_S = 2.0
"""A power cut takes back at most what was reported in so many seconds, and while the disk took it in."""
MANY = 256
"""Or as soon as so many files wait for it: where trials report often they would become too many."""
LEAST = 16
"""Files that are kept at least, to be written over: that costs less than to delete some and make others."""


class CheckpointPruner:
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

    def __enter__(self) -> "CheckpointPruner":
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
