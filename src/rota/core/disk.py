"""Bring what was written to the disk, so that a power cut cannot take it back."""

import ctypes
import errno
import os
from pathlib import Path

from rota.core.errors import InputError


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
