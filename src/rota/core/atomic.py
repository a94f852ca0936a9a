"""Files that appear under their name only when all of them has been written."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rota.core.errors import InputError


@contextmanager
def written(file: Path) -> Iterator[IO[bytes]]:
    """A stream into `file.partial`, which becomes the file at the end, or vanishes if that is not reached."""
    if not file.name:
        raise InputError(f"{str(file)!r} is not the name of a file to write")
    partial = file.with_name(file.name + ".partial")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as stream:
            yield stream
        partial.replace(file)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{file}: cannot be written ({reason}); choose another folder") from None
    finally:
        with suppress(OSError):
            partial.unlink()
