"""An append-only list of entries in a file that survives its writer.

Appended entries are there after the writer was killed, at any time. A power cut may take back those since the
last `sync`, never earlier ones. An entry is a kind and a table of plain values, with a checksum of it and all
entries before it.
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
"""Plain values: what JSON can hold, including NaN and infinity."""

MARK = 0x726F7461
"""The application id in the file's header."""
FORMAT = 2
WITHOUT_CHECKSUMS = 1
"""The format of journals without checksums, which are added when such a journal is opened."""
PATIENCE_S = 0.5
"""Seconds to wait for a lock, which a reader may hold for a moment."""
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
"""The content of the lock file: the number of synced entries, and a checksum of it."""
COUNT = slice(12)
"""The position of the number in it."""


class NotWritten(InputError):
    """There is no room to write. What was written before is intact."""


class DamagedJournal(InputError):
    """An entry of a journal is damaged or missing. The entries before it can be salvaged."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}; bring it back from a copy, or go on with what comes before it "
            '(rota run --resume DIR --salvage; of a sweep: restore="salvage")'
        )
        self.what = what


class JournalEntry(NamedTuple):
    """An entry of a journal."""

    number: int
    """1, 2, … in the order of writing."""
    at_s: float
    kind: str
    body: dict[str, Any]


Line = tuple[float, str, Body]
"""Time, kind and body of an entry that has no number yet."""


class Journal:
    """An open journal, which no other process can write to."""

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
        """Append one entry; it is kept once this returns."""
        self.append_all([(at_s, kind, body)])

    def append_all(self, lines: Iterable[Line]) -> None:
        """Append several entries: all are kept once this returns, or none."""
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
        """Flush the entries, and all files written before them, to the disk; record their number.

        May be called from another thread, with the count that the journal had when it was requested.
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
        """Move all entries from the log to the main file, and sync."""
        try:
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as error:
            raise _not_written(self.file, error) from None
        self.sync()

    def read(self) -> Iterator[JournalEntry]:
        """Yield the entries; raise DamagedJournal at one that is not as written."""
        return _entries(self._database, self.file)

    def close(self) -> None:
        """Close and unlock it."""
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
    """Yield the entries of a journal without locking it or writing anything."""
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
    """Truncate a journal before its first damaged entry; return what was damaged, or nothing if it is intact.

    The damaged file is kept beside it. Raises InputError if no entry is left.
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
    """Raise InputError if a missing journal has been on the disk."""
    if sealed := _sealed(file):
        raise InputError(
            f"{file}: is missing, but {sealed} entries of it were on the disk; bring it back (with its -wal, "
            "if it had one), or begin anew in another folder"
        )


def is_begun(file: Path) -> bool:
    """Return whether there is a journal, even if only a salvaged one that is not renamed yet."""
    return file.exists() or _salvaged_file(file).exists()


def is_sealed(file: Path) -> bool:
    """Return whether entries of a journal are known to have been on the disk."""
    return _sealed(file) > 0


def has_owner(file: Path) -> bool:
    """Return whether a process writes to a journal now."""
    try:
        lock = os.open(_lock_file(file), os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # without locks there are no writers
    finally:
        os.close(lock)
    return False


def _lock_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.lock")


def _salvaged_file(file: Path) -> Path:
    """Return the name of a salvaged journal until it replaces the damaged one."""
    return file.with_name(f"{file.name}.salvaged")


def _own(file: Path) -> int:
    """Lock a journal for writing; the lock ends with the process."""
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
    """Open a journal for writing; create it, accessible to its owner only, if it is missing."""
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}); choose another folder") from None
    database = _connected(f"{file.absolute().as_uri()}?mode=rw", file)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        database.execute("BEGIN")  # if killed meanwhile, it leaves an empty file or a journal
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
    """Write a journal of these entries beside a damaged one, which is replaced later."""
    with tempfile.TemporaryDirectory(prefix=f".{file.name}-", dir=file.parent) as folder:
        with Journal(Path(folder) / file.name) as journal:
            for line in lines:
                journal.append_all([line])
            journal.settle()
        _seal(lock, len(lines))
        (Path(folder) / file.name).rename(_salvaged_file(file))


def _put_salvaged(file: Path) -> None:
    """Replace a damaged journal by the salvaged one, if there is one; keep the damaged one.

    If this process is killed, the next one continues. The log is renamed first: SQLite would apply it to the
    new file.
    """
    for left in file.parent.glob(f".{file.name}-*"):  # of a process that was killed
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
    """Return the error about a failed write. The entries before it are intact."""
    no_room = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    fix = "make room" if no_room else "make it writable"
    return NotWritten(
        f"{file}: cannot be written ({error}); {fix}, then go on with it (--resume, restore=True)"
    )


def _connected(address: str, file: Path) -> sqlite3.Connection:
    """Connect to a journal, or to an empty file that is to become one."""
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
    """Raise DamagedJournal if only the log of a journal has content: SQLite would delete it."""
    log = file.with_name(f"{file.name}-wal")
    if file.stat().st_size == 0 and (_sealed(file) or (log.exists() and log.stat().st_size)):
        raise DamagedJournal(f"{file}: is empty, but has not always been")


def _connected_for_reading(file: Path, stack: ExitStack) -> sqlite3.Connection:
    """Connect to a journal, or to a copy where SQLite cannot write, as it must to share a journal.

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
        raise InputError(f"{file}: cannot be read ({error.strerror}); make it readable") from None
    return _connected(f"{copy.as_uri()}?mode=rw", file)


def _entries(database: sqlite3.Connection, file: Path) -> Iterator[JournalEntry]:
    """Yield entries up to the first that is damaged or missing."""
    number, checksum = 0, 0
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        for *row, found in database.execute(WITH if version == FORMAT else WITHOUT):
            checksum = _checksum(row, checksum)
            if row[0] != number + 1 or (version == FORMAT and found != checksum):
                raise ValueError("wrong checksum")
            number, at_s, kind, body = row
            yield JournalEntry(number, at_s, kind, json.loads(body))
    except (sqlite3.DatabaseError, ValueError, TypeError, RecursionError) as error:
        raise DamagedJournal(f"{file}: entry {number + 1} is damaged ({error})") from None


def _last(database: sqlite3.Connection, file: Path) -> tuple[int, int]:
    """Return number and checksum of the last entry."""
    try:
        number, checksum = database.execute(LAST).fetchone() or (0, 0)
        return int(number), int(checksum)
    except (sqlite3.DatabaseError, ValueError, TypeError) as error:
        raise DamagedJournal(f"{file}: its last entry is damaged ({error})") from None


def _checksum(row: Sequence[Any], before: int) -> int:
    """Return the checksum of an entry and all before it."""
    number, at_s, kind, body = row
    return zlib.crc32(f"{number} {at_s!r} {kind} {body}".encode(), before)


def _seal(lock: int, count: int) -> None:
    """Record that so many entries are on the disk."""
    os.pwrite(lock, SEALED.format(count, zlib.crc32(str(count).encode())).encode(), 0)
    os.fsync(lock)


def _sealed(file: Path) -> int:
    """Return the number of entries known to have been on the disk; 0 if unknown."""
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
