"""Text from wherever it comes: files, also compressed ones, and pipes, which can be read only once."""

import gzip
import io
import shutil
import stat
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, TextIO

from rota.core.errors import TraceError

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
