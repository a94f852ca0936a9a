"""An append-only list of what happened and what was decided, in a file that survives its writer.

What is appended is there after the writer was killed, at whatever instant. What the entries are about is the
business of whoever writes them: a kind and a table of plain values each.
"""

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from rota.core.errors import InputError

Body = Mapping[str, Any]
"""Plain values: what JSON can hold, NaN and infinity included."""

MARK = 0x726F7461
"""Says in the file's header that it is one of ours."""
FORMAT = 1
PATIENCE_S = 0.5
"""Somebody who only asks whether a journal has an owner holds its lock for an instant."""
TABLE = "CREATE TABLE IF NOT EXISTS entry (number INTEGER PRIMARY KEY, at_s REAL, kind TEXT, body TEXT)"
INSERT = "INSERT INTO entry (at_s, kind, body) VALUES "
ENCODE = json.JSONEncoder(separators=(",", ":")).encode
SELECT = "SELECT number, at_s, kind, body FROM entry ORDER BY number"


class NotWritten(InputError):
    """There is no room for what was to be kept. What was kept before is whole."""


class Entry(NamedTuple):
    """A line of a journal."""

    number: int
    """1, 2, … in the order in which they were written."""
    at_s: float
    kind: str
    body: dict[str, Any]


Line = tuple[float, str, Body]
"""An entry before it has a number: when, kind, body."""


class Journal:
    """The journal of whoever opened it: nobody else can write to it meanwhile."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lock = _own(file)
        try:
            self._database = _opened(file)
        except BaseException:
            os.close(self._lock)
            raise

    def append(self, kind: str, body: Body, at_s: float = 0.0) -> None:
        """One entry; it is kept once this returns."""
        self.append_all([(at_s, kind, body)])

    def append_all(self, lines: Iterable[Line]) -> None:
        """Several entries: all of them are kept once this returns, or none."""
        rows = [(at_s, kind, ENCODE(body)) for at_s, kind, body in lines]
        if not rows:
            return
        values = [value for row in rows for value in row]
        try:  # one statement is kept as a whole
            self._database.execute(INSERT + ",".join(["(?, ?, ?)"] * len(rows)), values)
        except sqlite3.OperationalError as error:
            raise _not_written(self.file, error) from None

    def read(self) -> Iterator[Entry]:
        """The entries, one by one."""
        return _entries(self._database, self.file)

    def close(self) -> None:
        """Let others have it."""
        with suppress(sqlite3.Error):  # a full disk: what was to be tidied up stays as it is
            self._database.close()
        os.close(self._lock)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_journal(file: Path) -> Iterator[Entry]:
    """The entries of a journal, whoever owns it; without owning it."""
    if not file.is_file():
        raise InputError(f"{file}: no such journal; name the folder of a run")
    with closing(_connected(f"{file.absolute().as_uri()}?mode=ro", file)) as database:
        if database.execute("PRAGMA user_version").fetchone()[0]:  # else it is about to be made
            yield from _entries(database, file)


def has_owner(file: Path) -> bool:
    """Whether somebody writes to a journal now."""
    try:
        lock = os.open(_lock_file(file), os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # where there are no locks, nobody can write
    finally:
        os.close(lock)
    return False


def _lock_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.lock")


def _own(file: Path) -> int:
    """Be the only one to write to a journal. Whoever dies lets it go."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(_lock_file(file), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}); choose another folder") from None
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() > until_s:
                os.close(lock)
                raise InputError(
                    f"{file}: another process runs this; wait for its end, or stop it with Ctrl-C"
                ) from None
            time.sleep(0.01)
        except OSError as error:
            os.close(lock)
            raise InputError(
                f"{file}: cannot be locked ({error.strerror}); choose a folder on another file system"
            ) from None


def _opened(file: Path) -> sqlite3.Connection:
    """For writing; made if it is not there, for the eyes of its owner only."""
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}); choose another folder") from None
    database = _connected(f"{file.absolute().as_uri()}?mode=rw", file)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("BEGIN")  # who is killed meanwhile leaves an empty file, or a journal
        database.execute(f"PRAGMA application_id = {MARK}")
        database.execute(f"PRAGMA user_version = {FORMAT}")
        database.execute(TABLE)
        database.execute("COMMIT")
    except sqlite3.OperationalError as error:
        database.close()
        raise _not_written(file, error) from None
    return database


def _not_written(file: Path, error: sqlite3.OperationalError) -> NotWritten:
    """What was kept is whole, so whoever wrote it can go on: a run or a sweep, each in its own way."""
    no_room = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    fix = "make room" if no_room else "see to it that it can be"
    return NotWritten(
        f"{file}: cannot be written ({error}); {fix}, then go on with it (--resume, restore=True)"
    )


def _connected(address: str, file: Path) -> sqlite3.Connection:
    """A connection to a journal, or to an empty file that is to become one."""
    database = sqlite3.connect(address, uri=True, isolation_level=None)
    try:
        (mark,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        database.close()
        raise InputError(f"{file}: not a journal ({error}); name the folder of a run") from None
    if (mark, version) != (MARK, FORMAT) and (mark, version, tables) != (0, 0, 0):
        database.close()
        raise InputError(f"{file}: not a journal of this version of rota; name the folder of a run")
    return database


def _entries(database: sqlite3.Connection, file: Path) -> Iterator[Entry]:
    try:
        for number, at_s, kind, body in database.execute(SELECT):
            yield Entry(number, at_s, kind, json.loads(body))
    except (sqlite3.DatabaseError, ValueError) as error:
        raise InputError(f"{file}: cannot be read ({error}); the run cannot be resumed") from None
