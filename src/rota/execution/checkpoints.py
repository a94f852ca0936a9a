"""The checkpoints of a run: the only owner of the names of their files.

A file has a line that says what it is, a checksum, a line of plain values about it, and what the trial wrote.
It appears under its name only when it is whole.
"""

import errno
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rota.core.errors import InputError
from rota.execution.journal import NotWritten
from rota.execution.orders import Done, Made, done

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


class Kept(NamedTuple):
    """What a checkpoint holds."""

    answer: Done
    """What was answered when it was made."""
    content: bytes
    """What the trial wrote."""


class Damaged(Exception):
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

    def write(self, answer: Done, which: Made, content: bytes, over: Name | None = None) -> None:
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

    def read(self, which: Made) -> Kept:
        """Exactly this one; Damaged if that is not possible."""
        file = self.file(which.trial, which.version)
        try:
            magic, checksum, body = file.read_bytes().split(b"\n", 2)
        except OSError as error:
            raise Damaged(f"{file}: {error.strerror}") from None
        except ValueError:
            raise Damaged(f"{file}: torn") from None
        if magic != MAGIC or hashlib.sha256(body).hexdigest().encode() != checksum:
            raise Damaged(f"{file}: torn, or not a checkpoint")
        about, _, content = body.partition(b"\n")
        answer = done(json.loads(about))
        if answer.digest != which.digest:
            raise Damaged(f"{file}: of another run, or made in another way")
        return Kept(answer, content)

    def is_intact(self, which: Made) -> bool:
        try:
            self.read(which)
        except Damaged:
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
