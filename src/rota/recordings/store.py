"""All recordings below a folder, complete or not."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rota.core.errors import InputError
from rota.recordings.folder import FACTS, About, complete, read_about

CONTENTS = {"points.csv": "tree", "curves.csv": "curves", "profile.csv": "profile"}
"""The file that tells the shape of a recording that is not complete."""


PARTIAL = "partial"
"""The folder, beside those of recordings, in which a recorder keeps the pieces of unfinished ones."""
NO_PIECES = {"asked.json", "seconds-per-step.json", "sittings.json"}
"""What else a recorder keeps there."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A folder with a recording in it, or with a part of one."""

    folder: Path
    shape: str
    about: About | None
    """None if it is not complete, or damaged."""
    problem: str = ""
    """What is wrong with it, in a sentence that says what to do."""


def recording_folders(path: Path) -> Iterator[Path]:
    """All folders with anything of a recording, or that cannot be looked into: this one, then those below."""
    if not path.is_dir():
        return
    try:
        is_one = complete(path) or any((path / name).is_file() for name in CONTENTS)
        below = sorted(each for each in path.iterdir() if each.is_dir() and not each.name.startswith("."))
    except PermissionError:
        is_one, below = True, []
    if is_one:
        yield path
    for child in below:
        yield from recording_folders(child)


def entries(path: Path) -> Iterator[Entry]:
    """What is there, as `recording.json` says; the CSV files are not looked at."""
    try:
        is_folder, what = path.is_dir(), "a file" if path.exists() else "not there"
    except OSError as error:  # a name that no folder can have
        is_folder, what = False, str(error.strerror)
    if not is_folder:
        raise InputError(f"{path}: {what}; give a folder with recordings in it")
    return (_entry(folder) for folder in recording_folders(path))


def unfinished(path: Path) -> dict[str, int]:
    """Of what is being recorded, or was when its recorder stopped, the number of pieces that are done."""
    pieces: dict[str, int] = {}
    for file in sorted(path.glob(f"{PARTIAL}/[!.]*/**/*.json")):
        if file.name not in NO_PIECES:
            name = file.relative_to(path / PARTIAL).parts[0]
            pieces[name] = pieces.get(name, 0) + 1
    return pieces


def _entry(folder: Path) -> Entry:
    if not os.access(folder, os.R_OK | os.X_OK):
        return Entry(
            folder, "unknown", None, f"{folder}: may not be looked into; permit it, or give another folder"
        )
    guess = next((shape for name, shape in CONTENTS.items() if (folder / name).is_file()), "unknown")
    try:
        about = read_about(folder)
    except InputError as error:
        return Entry(folder, guess, None, str(error))
    if about.shape not in CONTENTS.values():
        known = ", ".join(CONTENTS.values())
        return Entry(
            folder, about.shape, None, f"{folder / FACTS}: unknown shape {about.shape!r}; known: {known}"
        )
    return Entry(folder, about.shape, about)
