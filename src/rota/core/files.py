"""Read and write files: atomically, compressed, through pipes, shipped with rota, or as JSON facts."""

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
    """Return once all that was written to the file system of a folder is on its disk.

    One call for all files: to flush fifty small ones on their own takes twenty times as long.
    Raises InputError if the disk does not take it.
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
        raise InputError(f"{folder}: cannot be brought to the disk ({error.strerror}); see to it") from None


def _fall_back(number: int) -> None:
    """Flush all file systems where one alone cannot be; raise any other error as it is."""
    if number != errno.ENOSYS:
        raise OSError(number, os.strerror(number))
    os.sync()


log = logging.getLogger(__name__)


@contextmanager
def atomic_write(file: Path) -> Iterator[IO[bytes]]:
    """A stream into a file beside it, which becomes the file at the end, or vanishes if that fails."""
    if not file.name:
        raise InputError(f"{str(file)!r} is not the name of a file to write")
    partial = None
    try:
        target = file.resolve()  # what a link points to is written, not the link
        if target.exists() and not target.is_file():
            raise InputError(f"{file}: is there and is not a file; choose another name")
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


@contextmanager
def write_once(file: Path) -> Iterator[IO[bytes]]:
    """A stream into a file beside it, which becomes the file at the end; FileExistsError if there is one."""
    partial = file.with_name(f"{file.name}.{secrets.token_hex(8)}.partial")
    try:
        with partial.open("xb") as stream:
            yield stream
        try:
            os.link(partial, file)
        except FileExistsError:
            raise
        except OSError:  # a file system without such links
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Keep others who ask from writing to a folder at the same time: they wait."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); choose another folder") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.warning("%s: in use; waits until it is free", folder)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""What compressed files begin with."""
COMPRESSED = (".gz", ".zst")
ZSTD_MODULES = ("compression.zstd", "backports.zstd", "zstandard")
"""Any of them can decompress; the first is Python's own, from 3.14 on."""
FIRST_LINE = 1 << 20
"""Bytes in which the first line of a text ends."""

_HELD: ContextVar[dict[Path, bytes] | None] = ContextVar("_HELD", default=None)


@contextmanager
def held() -> Iterator[None]:
    """Keep what is read of pipes meanwhile, so that they can be opened again."""
    token = _HELD.set({})
    try:
        yield
    finally:
        _HELD.reset(token)


def name_of(path: Path) -> str:
    """What a workload is called that is read from here: the name of the file, without what it ends in."""
    if path.suffix in COMPRESSED:
        path = path.with_suffix("")
    return path.stem if not _is_pipe(path) else "pipe"


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a text in UTF-8. OSError if it cannot be read; TraceError if it is nothing to be read."""
    with _open_bytes(path) as stream:
        try:
            yield io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise TraceError(f"{path}: is not a whole file of gzip; compress it again") from None


@contextmanager
def _open_bytes(path: Path) -> Iterator[BinaryIO]:
    if _is_pipe(path):
        yield io.BytesIO(_unpacked(_content_of(path), path))
        return
    if not path.is_file() and path.exists():
        raise TraceError(f"{path}: is not a file, nor a pipe; expected a file of text")
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
    """All that comes through a pipe; what has no line in it is not waited for."""
    kept = _HELD.get()
    if kept is not None and path in kept:
        return kept[path]
    with path.open("rb") as file:
        content = file.read(FIRST_LINE)
        if len(content) == FIRST_LINE and b"\n" not in content and not content.startswith((GZIP, ZSTD)):
            raise TraceError(f"{path}: is not a table of text: its first line has no end")
        content += file.read()
    if kept is not None:
        kept[path] = content
    return content


def _unpacked(content: bytes, path: Path) -> bytes:
    if content.startswith(GZIP):
        try:
            return gzip.decompress(content)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise TraceError(f"{path}: is not a whole file of gzip; compress it again") from None
    return _unzstd(content, path) if content.startswith(ZSTD) else content


def _unzstd(content: bytes, path: Path) -> bytes:
    """Decompressed by a module that can, or else by the program."""
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
            raise TraceError(f"{path}: is not a whole file of zstd ({error}); compress it again") from None
    program = shutil.which("zstd")
    if program is None:
        raise TraceError(
            f"{path}: is compressed by zstd; pip install backports.zstd, or decompress it: zstd -d {path}"
        )
    done = subprocess.run([program, "-dcq"], input=content, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise TraceError(f"{path}: is not a whole file of zstd ({said}); compress it again")
    return done.stdout


def printable(text: str) -> str:
    """The text with what would steer a terminal, or cannot be written, as an escape like `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(char if _shows(char) else char.encode("unicode_escape").decode() for char in text)


def printable_lines(text: str) -> str:
    """The same, line by line."""
    return "\n".join(map(printable, text.split("\n")))


def _shows(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


LARGEST = 2**63 - 1
"""No count, time or measurement is larger: an integer of 64 bits can hold it."""

HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of half a character: two of them may be one, one alone cannot be written."""


def parsed(text: str) -> Any:
    """What is written there; a ValueError if it is no JSON, or says NaN or Infinity, which JSON cannot."""
    try:
        found = json.loads(text, parse_constant=_refused)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if HALF.search(text):
        json.dumps(found, ensure_ascii=False).encode()  # a UnicodeEncodeError is a ValueError
    return found


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON has")


FOLDERS = ("config", "examples", "results/recordings")
"""What is shipped, below the root."""
LEFT_OUT = {"__pycache__", "partial"}
"""Folders of what is not finished, or can be made again."""
PACKAGE = Path(__file__).parents[1]
INSIDE = PACKAGE / "shipped"
"""The root in an installed wheel."""


def root() -> Path:
    """Return the folder below which the shipped files are."""
    return INSIDE if INSIDE.is_dir() else PACKAGE.parents[1]


def in_checkout() -> bool:
    """Return whether the package is used from a checkout, which has scripts, too."""
    return (root() / "scripts" / "setup.sh").is_file()


def shipped_files(base: Path) -> Iterator[Path]:
    """Yield the shipped files below a root, as paths from there, in order."""
    for folder in FOLDERS:
        for file in sorted((base / folder).rglob("*")):
            inner = file.relative_to(base)
            if file.is_file() and not LEFT_OUT.intersection(inner.parts):
                yield inner


def located(path: Path) -> Path:
    """Return a path as it is, or, if nothing is there and rota ships a file of that name, where that is."""
    if path.is_absolute() or os.path.lexists(path):  # what cannot be looked at is said by its reader
        return path
    named = path.as_posix()
    is_shipped = any(named == folder or named.startswith(f"{folder}/") for folder in FOLDERS)
    found = root() / path
    return found if is_shipped and ".." not in path.parts and found.exists() else path
