"""Files that appear under their name only when all of them has been written."""

import fcntl
import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rota.core.errors import InputError

log = logging.getLogger(__name__)


@contextmanager
def written(file: Path) -> Iterator[IO[bytes]]:
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
def written_once(file: Path) -> Iterator[IO[bytes]]:
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
def alone_in(folder: Path) -> Iterator[None]:
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
