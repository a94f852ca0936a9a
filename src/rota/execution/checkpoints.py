"""The checkpoints of a run: the only owner of the names of their files.

A file has a line that says what it is, a checksum, a line of plain values about it, and what the trial wrote.
It appears under its name only when it is whole.
"""

import hashlib
import json
import os
from collections.abc import Container, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rota.core.errors import InputError
from rota.execution.journal import NotWritten
from rota.execution.orders import Done, Made, done

MAGIC = b"rota part 1"
ENDING = ".part"


class Kept(NamedTuple):
    """What a checkpoint holds."""

    answer: Done
    """What was answered when it was made."""
    content: bytes
    """What the trial wrote."""


class Damaged(Exception):
    """A checkpoint is not there, torn, or not the one that was asked for."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Those of one run, in a folder for the eyes of its owner only."""

    folder: Path

    def file(self, trial: int, version: int) -> Path:
        return self.folder / f"{trial:d}-{version:d}{ENDING}"

    def make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be made ({error.strerror}); choose another") from None

    def write(self, answer: Done, which: Made, content: bytes, over: tuple[int, int] | None = None) -> None:
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
            raise NotWritten(f"{file}: cannot be written ({error.strerror}); make room") from None

    def _write(self, file: Path, whole: bytes) -> None:
        """Over what is there: to empty a file first makes some file systems write it to the disk at once."""
        stream, at = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), 0
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

    def prune(self, unused: Iterable[tuple[int, int]]) -> None:
        for trial, version in unused:
            self.file(trial, version).unlink(missing_ok=True)

    def prune_all_but(self, used: Container[tuple[int, int]]) -> None:
        """What a controller that died left behind."""
        for file in self.folder.iterdir():
            name, _, ending = file.name.partition(".")
            if f".{ending}" != ENDING or _numbers(name) not in used:
                file.unlink(missing_ok=True)


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(word) for word in name.split("-") if word.isdecimal())
