"""Reading and writing files: atomic writes, locks, compression, pipes, JSON, files shipped with rota."""

import ctypes
import errno
import fcntl
import gzip
import io
import json
import logging
import os
import re
import secrets
import shutil
import stat
import subprocess
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO

from rota.core.errors import InputError, TraceError


def flush_to_disk(folder: Path) -> None:
    """Return once everything written to the file system of a folder is on disk.

    One call for all files: flushing fifty small ones separately takes twenty times as long. Raises InputError
    if the disk fails.
    """
    try:
        flush = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):  # not Linux
        os.sync()
        return
    try:
        opened = os.open(folder, os.O_RDONLY)
        try:
            if flush(opened):
                _fall_back(ctypes.get_errno())
        finally:
            os.close(opened)
    except OSError as error:
        raise InputError(f"{folder}: cannot be flushed to disk ({error.strerror}); check the disk") from None


def _fall_back(number: int) -> None:
    """Flush all file systems if one alone cannot be flushed; raise any other error."""
    if number != errno.ENOSYS:
        raise OSError(number, os.strerror(number))
    os.sync()


log = logging.getLogger(__name__)


@contextmanager
def atomic_write(file: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `file` at the end, or is removed if anything fails."""
    if not file.name:
        raise InputError(f"{str(file)!r} is not the name of a file to write")
    partial = None
    try:
        target = file.resolve()  # write to the target of a link, not over the link
        if target.exists() and not target.is_file():
            raise InputError(f"{file}: exists and is not a file; choose another name")
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
        with partial.open("wb") as stream:
            yield stream
        partial.replace(target)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{file}: cannot be written ({reason}); choose another folder") from None
    finally:
        if partial is not None:
            with suppress(OSError):
                partial.unlink()


def write_file(file: Path, content: str | bytes) -> None:
    """Write a whole file atomically; text as UTF-8."""
    with atomic_write(file) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def write_once(file: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that becomes `file` at the end; FileExistsError if `file` exists by then."""
    partial = file.with_name(f"{file.name}.{secrets.token_hex(8)}.partial")
    try:
        with partial.open("xb") as stream:
            yield stream
        try:
            os.link(partial, file)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on a folder; wait while another process holds it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); choose another folder") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.warning("%s: locked by another process; waiting", folder)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""First bytes of compressed files."""
COMPRESSED = (".gz", ".zst")
ZSTD_MODULES = ("compression.zstd", "backports.zstd", "zstandard")
"""Modules that can decompress zstd, the preferred one first; it is in Python from 3.14 on."""
FIRST_LINE = 1 << 20
"""Most bytes in the first line of a text."""

_HELD: ContextVar[dict[Path, bytes] | None] = ContextVar("_HELD", default=None)


@contextmanager
def held() -> Iterator[None]:
    """Keep what is read from pipes inside this context, so that they can be opened again."""
    token = _HELD.set({})
    try:
        yield
    finally:
        _HELD.reset(token)


def name_of(path: Path) -> str:
    """Return the name of a workload read from a path: the file name without suffixes."""
    if path.suffix in COMPRESSED:
        path = path.with_suffix("")
    return path.stem if not _is_pipe(path) else "pipe"


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a UTF-8 text, decompressed if necessary. Raises OSError, or TraceError if it is not a text."""
    with _open_bytes(path) as stream:
        try:
            yield io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise TraceError(f"{path}: is not a complete gzip file; compress it again") from None


@contextmanager
def _open_bytes(path: Path) -> Iterator[BinaryIO]:
    if _is_pipe(path):
        yield io.BytesIO(_unpacked(_content_of(path), path))
        return
    if not path.is_file() and path.exists():
        raise TraceError(f"{path}: is neither a file nor a pipe; expected a text file")
    with path.open("rb") as file:
        first = file.read(len(ZSTD))
        file.seek(0)
        if first.startswith(GZIP):
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield io.BufferedReader(unpacked)
        elif first == ZSTD:
            yield io.BytesIO(_unzstd(file.read(), path))
        else:
            yield file


def _is_pipe(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _content_of(path: Path) -> bytes:
    """Return everything from a pipe; a TraceError if the first line does not end."""
    kept = _HELD.get()
    if kept is not None and path in kept:
        return kept[path]
    with path.open("rb") as file:
        content = file.read(FIRST_LINE)
        if len(content) == FIRST_LINE and b"\n" not in content and not content.startswith((GZIP, ZSTD)):
            raise TraceError(f"{path}: is not a text table: its first line does not end")
        content += file.read()
    if kept is not None:
        kept[path] = content
    return content


def _unpacked(content: bytes, path: Path) -> bytes:
    if content.startswith(GZIP):
        try:
            return gzip.decompress(content)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise TraceError(f"{path}: is not a complete gzip file; compress it again") from None
    return _unzstd(content, path) if content.startswith(ZSTD) else content


def _unzstd(content: bytes, path: Path) -> bytes:
    """Decompress by the first module that is installed, or else by the zstd program."""
    for name in ZSTD_MODULES:
        try:
            module = import_module(name)
        except ImportError:
            continue
        try:
            if name == "zstandard":
                return bytes(module.ZstdDecompressor().stream_reader(io.BytesIO(content)).read())
            return bytes(module.decompress(content))
        except module.ZstdError as error:
            raise TraceError(f"{path}: is not a complete zstd file ({error}); compress it again") from None
    program = shutil.which("zstd")
    if program is None:
        raise TraceError(
            f"{path}: is compressed with zstd; pip install backports.zstd, or decompress it: zstd -d {path}"
        )
    done = subprocess.run([program, "-dcq"], input=content, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise TraceError(f"{path}: is not a complete zstd file ({said}); compress it again")
    return done.stdout


def printable(text: str) -> str:
    """Return the text with control characters, and those that cannot be encoded, escaped like `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(char if _shows(char) else char.encode("unicode_escape").decode() for char in text)


def printable_lines(text: str) -> str:
    """Return the text with every line escaped by `printable`."""
    return "\n".join(map(printable, text.split("\n")))


def _shows(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


LARGEST = 2**63 - 1
"""Largest count, time or measurement: that of a 64-bit integer."""

HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of a surrogate: two may form one character, one alone cannot be encoded."""


def parsed(text: str) -> Any:
    """Return parsed JSON; a ValueError if it is not JSON, or contains NaN or Infinity, which JSON has not."""
    try:
        found = json.loads(text, parse_constant=_refused)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if HALF.search(text):
        json.dumps(found, ensure_ascii=False).encode()  # a UnicodeEncodeError is a ValueError
    return found


def read_json(path: Path, fix: str) -> Any:
    """Return the content of a JSON file; an InputError that ends with `fix` if it cannot be read."""
    try:
        return parsed(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); {fix}") from None


def read_facts(
    path: Path, form: str, version: int, what: str, *, missing: str, other: str, again: str
) -> dict[str, Any]:
    """Return the content of a JSON file that says its format and version.

    Raises InputError with the text `missing` if it is not there, with the advice `other` if it is of another
    format, and with the advice `again` if it is of another version or damaged.
    """
    if not os.path.lexists(path):
        raise InputError(missing)
    found: dict[str, Any] = read_json(path, again)
    if not isinstance(found, dict) or found.get("format") != form:
        raise InputError(f"{path}: not the facts of {what}; {other}")
    if (known := found.get("version")) != version:
        raise InputError(f"{path}: {what} of version {known!r}, this rota reads {version}; {again}")
    return found


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


FOLDERS = ("config", "examples", "results/recordings")
"""Shipped folders, relative to the root."""
LEFT_OUT = {"__pycache__", "partial"}
"""Folders of unfinished or reproducible files, which are not shipped."""
PACKAGE = Path(__file__).parents[1]
INSIDE = PACKAGE / "shipped"
"""The root in an installed wheel."""


def root() -> Path:
    """Return the root of the shipped files."""
    return INSIDE if INSIDE.is_dir() else PACKAGE.parents[1]


def in_checkout() -> bool:
    """Return whether the package runs from a checkout, which also has scripts."""
    return (root() / "scripts" / "setup.sh").is_file()


def shipped_files(base: Path) -> Iterator[Path]:
    """Yield the shipped files below a root in order, relative to it."""
    for folder in FOLDERS:
        for file in sorted((base / folder).rglob("*")):
            inner = file.relative_to(base)
            if file.is_file() and not LEFT_OUT.intersection(inner.parts):
                yield inner


def located(path: Path) -> Path:
    """Return a path unchanged, or the file that rota ships under this name if the path does not exist."""
    if path.is_absolute() or os.path.lexists(path):  # if it cannot be accessed, its reader reports that
        return path
    named = path.as_posix()
    is_shipped = any(named == folder or named.startswith(f"{folder}/") for folder in FOLDERS)
    found = root() / path
    return found if is_shipped and ".." not in path.parts and found.exists() else path
