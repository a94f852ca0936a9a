"""An append-only list of what happened and what was decided, in a file that survives its writer.

What is appended is there after the writer was killed, at whatever instant. A power cut may take back what was
appended since the last `sync`, never what was before. What the entries are about is the business of whoever
writes them: a kind and a table of plain values each, with a checksum of it and of all entries before it.
"""

import fcntl
import json
import os
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from shutil import copyfile, rmtree
from types import TracebackType
from typing import Any, NamedTuple

from rota.core.errors import InputError
from rota.core.files import flush_to_disk

Body = Mapping[str, Any]
"""Plain values: what JSON can hold, NaN and infinity included."""

MARK = 0x726F7461
"""Says in the file's header that it is one of ours."""
FORMAT = 2
WITHOUT_CHECKSUMS = 1
"""The format of journals whose entries have none; they are given theirs when such a journal is opened."""
PATIENCE_S = 0.5
"""Somebody who only asks whether a journal has an owner holds its lock for an instant."""
TABLE = (
    "CREATE TABLE IF NOT EXISTS entry "
    "(number INTEGER PRIMARY KEY, at_s REAL, kind TEXT, body TEXT, checksum INTEGER)"
)
INSERT = "INSERT INTO entry (number, at_s, kind, body, checksum) VALUES "
ENCODE = json.JSONEncoder(separators=(",", ":")).encode
WITH = "SELECT number, at_s, kind, body, checksum FROM entry ORDER BY number"
WITHOUT = "SELECT number, at_s, kind, body, 0 FROM entry ORDER BY number"
LAST = "SELECT number, checksum FROM entry ORDER BY number DESC LIMIT 1"
SEALED = "{:>12} entries are on the disk, {:08x}\n"
"""What the file of the lock says, with a checksum of the number."""
COUNT = slice(12)
"""Where it says the number."""


class NotWritten(InputError):
    """There is no room for what was to be kept. What was kept before is whole."""


class DamagedJournal(InputError):
    """Something of a journal is damaged or gone. What comes before it can be resumed if that is wanted."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}; bring it back from a copy, or go on with what comes before it "
            '(rota run --resume DIR --salvage; of a sweep: restore="salvage")'
        )
        self.what = what


class JournalEntry(NamedTuple):
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
        with ExitStack() as stack:
            self._lock = _own(file)
            stack.callback(os.close, self._lock)
            _put_salvaged(file)
            if not file.exists():
                check_not_lost(file)
            self._database = stack.enter_context(closing(_opened(file)))
            self.count, self._checksum = _last(self._database, file)
            _check_complete(file, self.count, _sealed(file))
            stack.pop_all()

    def append(self, kind: str, body: Body, at_s: float = 0.0) -> None:
        """One entry; it is kept once this returns."""
        self.append_all([(at_s, kind, body)])

    def append_all(self, lines: Iterable[Line]) -> None:
        """Several entries: all of them are kept once this returns, or none."""
        number, checksum, values = self.count, self._checksum, []
        for at_s, kind, body in lines:
            number += 1
            row = (number, float(at_s) + 0.0, kind, ENCODE(body))  # SQLite has no -0.0
            checksum = _checksum(row, checksum)
            values += [*row, checksum]
        if not values:
            return
        try:  # one statement is kept as a whole
            self._database.execute(INSERT + ",".join(["(?, ?, ?, ?, ?)"] * (number - self.count)), values)
        except sqlite3.OperationalError as error:
            raise _not_written(self.file, error) from None
        self.count, self._checksum = number, checksum

    def sync(self, count: int | None = None) -> None:
        """Bring the entries to the disk, with all that was written before them; say how many they are.

        May be called from another thread, with the count that the journal had when it was asked for.
        """
        count = self.count if count is None else count
        flush_to_disk(self.file.parent)
        try:
            _seal(self._lock, count)
        except OSError as error:
            raise NotWritten(
                f"{_lock_file(self.file)}: cannot be written ({error.strerror}); make room"
            ) from None

    def settle(self) -> None:
        """Put all entries into the main file, which then says by itself what they are about; sync."""
        try:
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as error:
            raise _not_written(self.file, error) from None
        self.sync()

    def read(self) -> Iterator[JournalEntry]:
        """The entries, one by one; DamagedJournal where they are not what was written."""
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


def read_journal(file: Path) -> Iterator[JournalEntry]:
    """The entries of a journal, whoever owns it; without owning it, and without writing anything."""
    number, sealed = 0, _sealed(file)  # before it is read: its owner goes on meanwhile
    if (salvaged := _salvaged_file(file)).is_file():
        file = salvaged
    if not file.is_file():
        raise InputError(f"{file}: no such journal; name the folder of a run")
    with ExitStack() as stack:
        database = stack.enter_context(closing(_connected_for_reading(file, stack)))
        if database.execute("PRAGMA user_version").fetchone()[0]:  # else it is about to be made
            for entry in _entries(database, file):
                number = entry.number
                yield entry
    _check_complete(file, number, sealed)


def salvage(file: Path) -> str:
    """Cut a journal off before what is damaged in it; return what that was, nothing if it is whole.

    The damaged file is kept beside it. Raises InputError if nothing of it is left.
    """
    lock = _own(file)
    try:
        _put_salvaged(file)
        kept: list[Line] = []
        try:
            for entry in read_journal(file):
                kept.append((entry.at_s, entry.kind, entry.body))
        except DamagedJournal as damage:
            if not kept:
                raise InputError(f"{damage.what}; nothing comes before it: begin anew elsewhere") from None
            _write_salvaged(file, kept, lock)
            _put_salvaged(file)
            return damage.what
        return ""
    finally:
        os.close(lock)


def check_not_lost(file: Path) -> None:
    """Raise InputError if a journal that is not there has been on the disk."""
    if sealed := _sealed(file):
        raise InputError(
            f"{file}: is missing, but {sealed} entries of it were on the disk; bring it back (with its -wal, "
            "if it had one), or begin anew in another folder"
        )


def is_begun(file: Path) -> bool:
    """Whether there is a journal, if only one that was salvaged and has not yet got its name."""
    return file.exists() or _salvaged_file(file).exists()


def is_sealed(file: Path) -> bool:
    """Whether it is known that entries of a journal have been on the disk."""
    return _sealed(file) > 0


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


def _salvaged_file(file: Path) -> Path:
    """What was salvaged, whole, until it is put in the place of the damaged journal."""
    return file.with_name(f"{file.name}.salvaged")


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
        (version,) = database.execute("PRAGMA user_version").fetchone()
        database.execute("BEGIN")  # who is killed meanwhile leaves an empty file, or a journal
        database.execute(f"PRAGMA application_id = {MARK}")
        database.execute(f"PRAGMA user_version = {FORMAT}")
        database.execute(TABLE)
        if version == WITHOUT_CHECKSUMS:
            _add_checksums(database)
        database.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        database.close()
        if isinstance(error, sqlite3.OperationalError):
            raise _not_written(file, error) from None
        raise DamagedJournal(f"{file}: is damaged ({error})") from None
    return database


def _add_checksums(database: sqlite3.Connection) -> None:
    database.execute("ALTER TABLE entry ADD COLUMN checksum INTEGER")
    checksum = 0
    for *row, _ in database.execute(WITHOUT).fetchall():
        checksum = _checksum(row, checksum)
        database.execute("UPDATE entry SET checksum = ? WHERE number = ?", (checksum, row[0]))


def _write_salvaged(file: Path, lines: list[Line], lock: int) -> None:
    """Write a journal of these entries beside a damaged one, which is as it was until that is whole."""
    with tempfile.TemporaryDirectory(prefix=f".{file.name}-", dir=file.parent) as folder:
        with Journal(Path(folder) / file.name) as journal:
            for line in lines:
                journal.append_all([line])
            journal.settle()
        _seal(lock, len(lines))
        (Path(folder) / file.name).rename(_salvaged_file(file))


def _put_salvaged(file: Path) -> None:
    """Put what was salvaged, if there is such a file, in the place of the damaged journal, which is kept.

    Whoever is killed meanwhile leaves it to the next one. All of the damaged one goes before: SQLite would
    add a log that lies beside a file to it.
    """
    for left in file.parent.glob(f".{file.name}-*"):  # of somebody who was killed
        rmtree(left, ignore_errors=True)
    if not _salvaged_file(file).exists():
        return
    number = 1
    while (damaged := file.with_name(f"{file.stem}-damaged-{number}{file.suffix}")).exists():
        number += 1
    for ending in ("-shm", "-wal", ""):
        with suppress(FileNotFoundError):
            file.with_name(file.name + ending).rename(damaged.with_name(damaged.name + ending))
    _salvaged_file(file).rename(file)


def _not_written(file: Path, error: sqlite3.OperationalError) -> NotWritten:
    """What was kept is whole, so whoever wrote it can go on: a run or a sweep, each in its own way."""
    no_room = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    fix = "make room" if no_room else "see to it that it can be"
    return NotWritten(
        f"{file}: cannot be written ({error}); {fix}, then go on with it (--resume, restore=True)"
    )


def _connected(address: str, file: Path) -> sqlite3.Connection:
    """A connection to a journal, or to an empty file that is to become one."""
    _check_not_emptied(file)
    database = sqlite3.connect(address, uri=True, isolation_level=None)
    try:
        database.execute("BEGIN")  # all three as of one moment: it may be made meanwhile
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (mark,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        database.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        database.close()
        if _sealed(file):
            raise DamagedJournal(f"{file}: is damaged ({error})") from None
        raise InputError(f"{file}: not a journal ({error}); name the folder of a run") from None
    known = (mark, version) in ((MARK, FORMAT), (MARK, WITHOUT_CHECKSUMS))
    if not known and (mark, version, tables) != (0, 0, 0):
        database.close()
        raise InputError(f"{file}: not a journal of this version of rota; name the folder of a run")
    return database


def _check_not_emptied(file: Path) -> None:
    """Raise DamagedJournal if only the log of a journal has a content: SQLite would delete it."""
    log = file.with_name(f"{file.name}-wal")
    if file.stat().st_size == 0 and (_sealed(file) or (log.exists() and log.stat().st_size)):
        raise DamagedJournal(f"{file}: is empty, but has not always been")


def _connected_for_reading(file: Path, stack: ExitStack) -> sqlite3.Connection:
    """Where nothing can be written, SQLite reads a copy: it writes to share a journal with its owner.

    The log is copied first: if its owner moves entries from there to the main file meanwhile, both have them.
    """
    if os.access(file.parent, os.W_OK):
        return _connected(f"{file.absolute().as_uri()}?mode=ro", file)
    copy = Path(stack.enter_context(tempfile.TemporaryDirectory())) / file.name
    try:
        for ending in ("-wal", ""):
            if (beside := file.with_name(file.name + ending)).exists():
                copyfile(beside, copy.with_name(copy.name + ending))
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); see to it that it can be") from None
    return _connected(f"{copy.as_uri()}?mode=rw", file)


def _entries(database: sqlite3.Connection, file: Path) -> Iterator[JournalEntry]:
    """Until one is not what was written: it, or something before it, is damaged, or one is missing."""
    number, checksum = 0, 0
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        for *row, found in database.execute(WITH if version == FORMAT else WITHOUT):
            checksum = _checksum(row, checksum)
            if row[0] != number + 1 or (version == FORMAT and found != checksum):
                raise ValueError("its checksum is another one")
            number, at_s, kind, body = row
            yield JournalEntry(number, at_s, kind, json.loads(body))
    except (sqlite3.DatabaseError, ValueError, TypeError, RecursionError) as error:
        raise DamagedJournal(f"{file}: entry {number + 1} is damaged ({error})") from None


def _last(database: sqlite3.Connection, file: Path) -> tuple[int, int]:
    """The number and the checksum of the last entry."""
    try:
        number, checksum = database.execute(LAST).fetchone() or (0, 0)
        return int(number), int(checksum)
    except (sqlite3.DatabaseError, ValueError, TypeError) as error:
        raise DamagedJournal(f"{file}: its last entry is damaged ({error})") from None


def _checksum(row: Sequence[Any], before: int) -> int:
    """Of an entry and all before it."""
    number, at_s, kind, body = row
    return zlib.crc32(f"{number} {at_s!r} {kind} {body}".encode(), before)


def _seal(lock: int, count: int) -> None:
    """Write down that so many entries are on the disk; they must be."""
    os.pwrite(lock, SEALED.format(count, zlib.crc32(str(count).encode())).encode(), 0)
    os.fsync(lock)


def _sealed(file: Path) -> int:
    """How many entries are known to have been on the disk; 0 if that is not known."""
    try:
        count = int(_lock_file(file).read_bytes()[COUNT])
    except (OSError, ValueError):
        return 0
    said = SEALED.format(count, zlib.crc32(str(count).encode())).encode()
    return count if _lock_file(file).read_bytes() == said else 0


def _check_complete(file: Path, count: int, sealed: int) -> None:
    if count < sealed:
        missing = f"{file.name}-wal" if file.exists() else file.name
        raise DamagedJournal(
            f"{file}: has {count} entries, but {sealed} were on the disk: {missing} is missing or cut off"
        )
