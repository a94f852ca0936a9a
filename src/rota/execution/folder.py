"""The folder of a real run, the logs of its workers, and timelines too long for memory."""

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rota.config.load import read
from rota.core.errors import InputError
from rota.core.files import flush_to_disk, write_file, write_once
from rota.core.population.events import Event
from rota.execution.assignments import ENCODE
from rota.execution.checkpoints import Checkpoints
from rota.execution.entries import event_records, parse_events
from rota.execution.journal import NotWritten, check_not_lost, is_begun, is_sealed, read_journal


def config_digest(table: Mapping[str, object]) -> str:
    """Return a digest of what a configuration says, however it is formatted."""
    return hashlib.sha256(json.dumps(table, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The files of one repetition of a run."""

    path: Path

    @property
    def journal(self) -> Path:
        """The journal, an SQLite database."""
        return self.path / "journal.sqlite"

    @property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints of all trials or jobs."""
        return Checkpoints(self.path / "checkpoints")

    @property
    def spool(self) -> Path:
        """The file of events that are too many for memory."""
        return self.path / "spool.jsonl"

    @property
    def ray(self) -> Path:
        """A link to the folder of a Ray cluster that was started for the run."""
        return self.path / "ray"

    @property
    def logs(self) -> Path:
        """The folder of what workers print, a file per slot."""
        return self.path / "logs"

    def check_nothing_was_made(self, is_what: str = "is missing or empty") -> None:
        """Raise InputError if there are checkpoints but no journal, which then was lost."""
        check_not_lost(self.journal)
        if count := sum(1 for _ in self.checkpoints.names()):
            raise InputError(
                f"{self.journal}: {is_what}, but there are {count} checkpoints of its run; bring "
                "it back (with its -wal, if it had one), or begin anew in another folder"
            )

    def check_config(self, digest: str, config: Path) -> None:
        """Raise InputError if the run began with another configuration, or its journal was truncated."""
        entries = list(islice(read_journal(self.journal), 2))
        if entries and entries[0].body.get("config", digest) not in (digest, ""):
            raise InputError(
                f"{config}: has been changed since the run began; bring back what it was, or begin anew "
                "in another folder"
            )
        if len(entries) < 2 and not is_sealed(self.journal):  # both are there before anything is trained
            self.check_nothing_was_made("has only its first entry")

    def make(self) -> None:
        """Create the folders, accessible to their owner only."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.logs.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be made ({error.strerror}); choose another") from None


@dataclass(frozen=True, slots=True)
class RealFolder:
    """A run folder with all its repetitions."""

    path: Path

    @property
    def config(self) -> Path:
        """The configuration in full."""
        return self.path / "config.toml"

    @property
    def result(self) -> Path:
        """The result as JSON; it exists once the run is complete."""
        return self.path / "result.json"

    @property
    def runs(self) -> Path:
        """The folder of all repetitions."""
        return self.path / "runs"

    def begin(self, config: str, files: Mapping[str, bytes] | None = None) -> None:
        """Create the folder, accessible to its owner only, with the configuration of a new run.

        `files` (name → content) are written before the configuration.

        Raises InputError if there is a run already, or if other users could write there.
        """
        if self.begun() or self.config.exists():
            raise self.has_a_run()
        self.make_own()
        try:
            self._make_runs()
            for name, content in (files or {}).items():
                write_file(self.path / name, content)
            with write_once(self.config) as stream:
                stream.write(config.encode())
        except FileExistsError:
            raise self.has_a_run() from None
        except OSError as error:
            raise InputError(f"{self.path}: cannot be made ({error.strerror}); choose another") from None
        flush_to_disk(self.path)

    def make_own(self) -> None:
        """Create the folder; raise InputError if it cannot be made, or if other users could write there."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                self.path.mkdir(mode=0o700)
            except FileExistsError:
                self._check_own(self.path)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be made ({error.strerror}); choose another") from None

    def has_a_run(self) -> InputError:
        """Return the error that there is a run already."""
        return InputError(
            f"{self.path}: has a run already; go on with --resume {self.path}, or choose another folder"
        )

    def _make_runs(self) -> None:
        """Create the folder of the repetitions; raise FileExistsError if it exists and is not empty."""
        try:
            self.runs.mkdir(mode=0o700)
        except FileExistsError:
            self._check_own(self.runs)
            if any(self.runs.iterdir()):
                raise

    def _check_own(self, folder: Path) -> None:
        """Raise InputError if the folder has links, or others could write to it."""
        for path in (folder, *folder.iterdir()):
            if path.is_symlink():
                raise InputError(f"{path}: is a link, and nothing is written through it; choose a new folder")
        found = folder.stat()
        if found.st_uid != os.geteuid():
            raise InputError(f"{folder}: belongs to another user; choose a new folder")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise InputError(
                f"{folder}: others may write to it (mode {found.st_mode & 0o7777:o}); "
                f"chmod go-w {folder}, or choose a new folder"
            )

    def table(self) -> dict[str, object]:
        """Return the configuration of the run in this folder.

        Raises InputError if the run began with another one, or a journal is missing.
        """
        begun = self.begun()
        if not self.config.exists():
            if begun:
                raise InputError(f"{self.config}: is missing, but there is a run; bring it back")
            raise InputError(f"{self.path}: no run is there; name the folder that was given with --out")
        table = read(self.config)
        if not table:
            raise InputError(f"{self.config}: is empty; bring back the configuration that the run began with")
        for seed in self._seeds("runs/*/"):
            if seed not in begun:
                self.paths(seed).check_nothing_was_made()
        for seed in begun:
            self.paths(seed).check_config(config_digest(table), self.config)
        self._check_runs(begun, table.get("seed"))
        return table

    def digest(self) -> str:
        """Return the digest of the configuration."""
        return config_digest(read(self.config))

    def _check_runs(self, begun: list[int], first: object) -> None:
        """Raise InputError if a repetition is missing. They begin in order of their seeds."""
        broken = [path for path in self.runs.glob("*") if path.is_symlink() and not path.exists()]
        if not self.runs.is_dir():
            broken = [self.runs]
        elif begun and isinstance(first, int):
            gone = (seed for seed in range(first, begun[-1]) if seed not in begun)
            broken += [self.paths(seed).journal for seed in islice(gone, 1)]
        if broken:
            raise InputError(
                f"{broken[0]}: is missing, but the run has begun; bring it back (is its storage mounted?), "
                "or begin anew in another folder"
            )

    def paths(self, seed: int) -> RunPaths:
        """Return the files of the repetition with a seed."""
        return RunPaths(self.runs / str(seed))

    @property
    def again(self) -> RunPaths:
        """The files of the retrained best trial."""
        return RunPaths(self.path / "replay")

    def begun(self) -> list[int]:
        """Return the seeds of repetitions that have a journal."""
        return [seed for seed in self._seeds("runs/*/") if is_begun(self.paths(seed).journal)]

    def _seeds(self, pattern: str) -> list[int]:
        names = (folder.name for folder in self.path.glob(pattern))
        return sorted(int(name) for name in names if name.isdecimal() and name.isascii())


TAIL = 2000
"""Number of characters of a log that are shown when its worker died."""
BYTES = 4
"""Maximal number of bytes of a character."""


def opened(log: Path) -> int:
    """Open a log for appending; return the file descriptor."""
    try:
        return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise NotWritten(f"{log}: cannot be written ({error.strerror}); make room, then try again") from None


def last_line(text: str) -> str:
    """Return the last line that is not empty: the error, if it is a traceback."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "?")


def last_of(log: Path, most: int = TAIL) -> str:
    """Return the last characters of a log; empty if it cannot be read."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - BYTES * most))
            return stream.read().decode("utf-8", "replace")[-most:]
    except OSError:
        return ""


MOST = 10_000
"""Number of events that are kept in memory."""
NEW = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL


class Spool:
    """All events of a run, in order; they can be iterated over repeatedly until it is closed.

    The file is accessible to its owner only, and is deleted on close.
    """

    def __init__(self, file: Path, most: int = MOST) -> None:
        self._file, self._most = file, most
        self._there = 0
        self._recent: list[Event] = []
        self.close()  # of a process that died: all of it comes again from the journal

    def take(self, events: list[Event]) -> None:
        """Move events here: the list is empty afterwards."""
        self._recent += events
        events.clear()
        if len(self._recent) > self._most:
            self._put_away()

    def close(self) -> None:
        """Delete all events."""
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
