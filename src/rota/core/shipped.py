"""Files that come with rota: configurations, the trace, recordings, examples.

In a checkout they are at its root, where people read them; a wheel has copies in the package (`setup.py`).
Below their root they have the same names in both, so that paths from one to another hold.
"""

import os
from collections.abc import Iterator
from pathlib import Path

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
