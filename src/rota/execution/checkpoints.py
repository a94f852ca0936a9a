"""Checkpoints of a run: their files, how workers access them, and when they may be deleted."""

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
from rota.execution.assignments import Assignment, CheckpointInfo, Done, parse_done
from rota.execution.journal import Journal, NotWritten

MAGIC = b"rota part 1"
ENDING = ".part"
OWNER = ".run"
"""The file that names the run which the checkpoints of a folder belong to."""
OURS = re.compile(r"(\d+)-(\d+)(\.part|\.\d+\.partial)", re.ASCII)
"""Names of checkpoints, complete or being written."""
FIXES = {errno.ENOENT: "bring its folder back", errno.EISDIR: "move what is there away"}
"""Remedies by error number, if a checkpoint cannot be written; otherwise the disk is full."""

Name = tuple[int, int]
"""Trial or job, and version of a checkpoint."""


class CheckpointContents(NamedTuple):
    """The content of a checkpoint."""

    answer: Done
    """The answer given when it was made."""
    content: bytes
    """The bytes that the trial saved."""


class DamagedCheckpoint(Exception):
    """A checkpoint is missing, damaged, or another one than requested."""


class MissingStorage(InputError):
    """The checkpoints of a run are not where they were, which is not a trial's fault."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder}: the checkpoints of this run are not there (is their storage mounted?); bring them "
            "back and go on with --resume, or train again what they held: --resume DIR --salvage"
        )


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of one run, in a folder that is accessible to its owner only."""

    folder: Path

    def file(self, trial: int, version: int) -> Path:
        """Return the file of a checkpoint, whether it exists or not."""
        return self.folder / f"{trial:d}-{version:d}{ENDING}"

    def claim(self, run: str, needed: Iterable[Name] = (), *, anew: bool = False) -> None:
        """Make the folder that of a run; create it if no checkpoint is needed yet.

        Raises MissingStorage if checkpoints are needed and none is there, unless they are to be made `anew`;
        InputError if the folder belongs to another run.
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
        """Return whether the folder exists and belongs to that run."""
        return self._owner() == run

    def _owner(self) -> str | None:
        """Return the name of the run; None if it is missing or damaged."""
        try:
            name = (self.folder / OWNER).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        return name if name.isprintable() and name else None

    def names(self) -> Iterator[Name]:
        """Return the names of all checkpoints."""
        return (name for name, file in self._files() if file.suffix == ENDING)

    def _files(self) -> Iterator[tuple[Name, Path]]:
        """Yield checkpoints, complete or partial; other files are ignored."""
        if not self.folder.is_dir():
            return
        with os.scandir(self.folder) as found:
            for entry in found:
                ours = OURS.fullmatch(entry.name)
                if ours and entry.is_file(follow_symlinks=False):
                    yield (int(ours[1]), int(ours[2])), Path(entry.path)

    def write(self, answer: Done, which: CheckpointInfo, content: bytes, over: Name | None = None) -> None:
        """Write by rename, with a checksum. To overwrite an unneeded file is faster than to create one."""
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
        """Overwrite a file without truncating it first: some file systems would then sync it at once."""
        stream, at = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600), 0
        try:
            while at < len(whole):
                at += os.write(stream, whole[at:] if at else whole)
            if os.fstat(stream).st_size > at:
                os.ftruncate(stream, at)
        finally:
            os.close(stream)

    def read(self, which: CheckpointInfo) -> CheckpointContents:
        """Return exactly this checkpoint; raise DamagedCheckpoint if that is impossible."""
        file = self.file(which.trial, which.version)
        try:
            magic, checksum, body = file.read_bytes().split(b"\n", 2)
        except OSError as error:
            raise DamagedCheckpoint(f"{file}: {error.strerror}") from None
        except ValueError:
            raise DamagedCheckpoint(f"{file}: incomplete") from None
        if magic != MAGIC or hashlib.sha256(body).hexdigest().encode() != checksum:
            raise DamagedCheckpoint(f"{file}: damaged, or not a checkpoint")
        about, _, content = body.partition(b"\n")
        answer = parse_done(json.loads(about))
        if answer.digest != which.digest:
            raise DamagedCheckpoint(f"{file}: of another run, or made in another way")
        return CheckpointContents(answer, content)

    def is_intact(self, which: CheckpointInfo) -> bool:
        """Return whether exactly this checkpoint can be read."""
        try:
            self.read(which)
        except DamagedCheckpoint:
            return False
        return True

    def prune(self, unused: Iterable[Name]) -> None:
        """Delete these checkpoints, if they exist."""
        for name in unused:
            self.file(*name).unlink(missing_ok=True)

    def sweep(self, keep: Callable[[Name], bool]) -> None:
        """Delete all checkpoints but those to keep, and partial ones; nothing if the folder is a link."""
        if self.folder.is_symlink():
            return
        for name, file in list(self._files()):
            if file.suffix != ENDING or not keep(name):
                file.unlink(missing_ok=True)


log = logging.getLogger(__name__)


class Store(Protocol):
    """Access to checkpoints: `Checkpoints` itself, or a remote one."""

    def read(self, which: CheckpointInfo) -> CheckpointContents:
        """Return exactly this checkpoint; raise DamagedCheckpoint if that is impossible."""

    def write(
        self, answer: Done, which: CheckpointInfo, content: bytes, over: tuple[int, int] | None = None
    ) -> None:
        """Write a checkpoint; raise NotWritten if there is no room."""


class LostCheckpoint(Exception):
    """Neither the source of an assignment nor an earlier checkpoint can be read."""


class Start(NamedTuple):
    """The point from which a worker gets to the source of an assignment."""

    content: bytes | None
    """The content to load; None: the first step."""
    again: tuple[CheckpointInfo, ...]
    """The intervals to train again after that, in order; the last one makes the source."""


def earlier_than(
    lost: CheckpointInfo,
    sources: Mapping[str, CheckpointInfo | None],
    is_intact: Callable[[CheckpointInfo], bool],
) -> tuple[CheckpointInfo | None, ...]:
    """Return the ancestors of a checkpoint, back to an intact one or the first step.

    `sources` has the source of each checkpoint by its digest; None: the first step.
    """
    found: list[CheckpointInfo | None] = [sources[lost.digest]]
    while (last := found[-1]) is not None and not is_intact(last):
        found.append(sources[last.digest])
    return tuple(found)


def start_of(assignment: Assignment, store: Store) -> Start:
    """Return the newest checkpoint to start from; raise LostCheckpoint if there is none."""
    again: list[CheckpointInfo] = []
    damages: list[str] = []
    for which in (assignment.source, *assignment.earlier):
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
"""Seconds between two syncs: a power cut takes back at most the reports since the last one."""
MANY = 256
"""Number of unneeded files that triggers a sync earlier."""
LEAST = 16
"""Minimal number of files kept for overwriting, which costs less than to delete and create files."""


class CheckpointPruner:
    """Syncs a run to the disk in a thread, and then frees checkpoints that are no longer needed."""

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
        """Number of journal entries at the last sync."""
        self._unneeded: list[Name] = []
        """Checkpoints that are not needed according to the journal, which may not be synced yet."""
        self._syncing: list[Name] = []
        """Checkpoints that are free once the present sync is done."""
        self._free: list[Name] = []
        self._asked, self._spare = 0, LEAST
        """Number of files requested since the last sync, and the number to keep: those requested before
        it."""

    def add(self, names: Iterable[Name]) -> None:
        """Add checkpoints that are not needed according to entries already in the journal."""
        self._unneeded += names

    def take(self) -> Name | None:
        """Return a checkpoint that may be overwritten; None if there is none."""
        self._asked += 1
        return self._free.pop() if self._free else None

    def tidy(self) -> None:
        """Delete free checkpoints, and start a sync if it is due; return immediately."""
        if self._sync is not None and self._sync.done():
            self._end_sync()
        due = self._tick() >= self._next_s or len(self._unneeded) >= MANY
        if self._sync is None and due and self._journal.count > self._synced:
            self._begin_sync()
        self._delete(self._spare)

    def settle(self) -> None:
        """Sync everything, then delete all free checkpoints."""
        self._end_sync()
        self._begin_sync()
        self._end_sync()
        self._delete(0)

    def __enter__(self) -> "CheckpointPruner":
        return self

    def __exit__(self, *error: object) -> None:
        """Wait for the present sync; delete nothing more."""
        self._thread.shutdown()

    def _begin_sync(self) -> None:
        self._synced = self._journal.count
        self._syncing, self._unneeded = self._unneeded, []
        self._sync = self._thread.submit(self._flush, self._synced)

    def _flush(self, count: int) -> None:
        """Sync the checkpoints, if they are on another disk than the journal, then the journal."""
        folder, beside = self._checkpoints.folder, self._journal.file.parent
        with suppress(OSError):  # a missing folder is noticed where it is needed
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
