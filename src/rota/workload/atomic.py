"""Writing a file so that it is there in full or not at all."""

from contextlib import suppress
from pathlib import Path

from rota.core.errors import InputError


def write_atomically(path: Path, data: bytes) -> None:
    """Write beside the file, then rename; a failure leaves what was there before."""
    if not path.name:
        raise InputError(f"{str(path)!r} is not the name of a file to write")
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; choose another place") from None
    finally:
        with suppress(OSError):
            partial.unlink()
