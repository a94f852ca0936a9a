"""The files of code from outside that a run follows from."""

import hashlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rota.core.errors import InputError
from rota.core.outside import sources


def files_behind(things: Iterable[Any]) -> list[Path]:
    """Return the files that classes, functions or objects from outside the package consist of.

    The script that is being run is left out: it says what is to be run.
    """
    kinds = [each if isinstance(each, type) or hasattr(each, "__code__") else type(each) for each in things]
    modules = {base.__module__ for kind in kinds for base in getattr(kind, "__mro__", (kind,))}
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    found = {file for module in modules - {"__main__", "builtins"} for file in sources(module)}
    return sorted(found - {Path(script).resolve()} if script else found)


def code_of(things: Iterable[Any]) -> dict[str, str]:
    """Return the digest of each of these files."""
    return {str(file): digest_of(file) for file in files_behind(things)}


def check_code(code: Mapping[str, str]) -> None:
    """Raise an error if one of the files is not what it was."""
    for name, digest in code.items():
        file = Path(name)
        if not file.is_file() or digest_of(file) != digest:
            what = "has been changed since" if file.is_file() else "is gone, which was there when"
            raise InputError(f"{file}: {what} the run began; bring back what it was, or begin anew elsewhere")


def digest_of(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()
