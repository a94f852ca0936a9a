"""All recordings below a folder, complete or not, and the names of their models."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from rota.core.errors import InputError
from rota.core.files import located
from rota.recordings.curve import SHAPE as CURVES
from rota.recordings.curve import Curves, read_curves
from rota.recordings.folder import FACTS, About, complete, read_about
from rota.recordings.growth import SHAPE as GROWTH
from rota.recordings.growth import GrowthTree, in_growth_order, read_growth_tree
from rota.recordings.profile import SHAPE as PROFILES
from rota.recordings.profile import Profiles, read_profiles
from rota.recordings.tree import SHAPE as TREES
from rota.recordings.tree import Tree, in_order, read_tree

CONTENTS = {"points.csv": "tree", "nodes.csv": "growth", "curves.csv": "curves", "profile.csv": "profile"}
"""File that tells the shape of an incomplete recording."""


PARTIAL = "partial"
"""Folder for the pieces of unfinished recordings, next to the finished ones."""
NO_PIECES = {"asked.json", "seconds-per-step.json", "sittings.json"}
"""Other files that a recorder keeps there."""


@dataclass(frozen=True, slots=True)
class RecordingEntry:
    """A folder with a recording or a part of one."""

    folder: Path
    shape: str
    about: About | None
    """Contents of `recording.json`; None if it is incomplete or damaged."""
    problem: str = ""
    """What is wrong with it and what to do, as a sentence."""


def recording_folders(path: Path) -> Iterator[Path]:
    """Yield this folder and those below that hold a part of a recording, or cannot be read."""
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


def entries(path: Path) -> Iterator[RecordingEntry]:
    """Return the recordings by their `recording.json`; CSV files are not read."""
    try:
        is_folder, what = path.is_dir(), "a file" if path.exists() else "not there"
    except OSError as error:  # a name that no folder can have
        is_folder, what = False, str(error.strerror)
    if not is_folder:
        raise InputError(f"{path}: {what}; give a folder with recordings in it")
    return (_entry(folder) for folder in recording_folders(path))


def unfinished(path: Path) -> dict[str, int]:
    """Return unfinished recording → number of its finished pieces."""
    pieces: dict[str, int] = {}
    for file in sorted(path.glob(f"{PARTIAL}/[!.]*/**/*.json")):
        if file.name not in NO_PIECES:
            name = file.relative_to(path / PARTIAL).parts[0]
            pieces[name] = pieces.get(name, 0) + 1
    return pieces


def _entry(folder: Path) -> RecordingEntry:
    if not os.access(folder, os.R_OK | os.X_OK):
        return RecordingEntry(
            folder, "unknown", None, f"{folder}: may not be looked into; permit it, or give another folder"
        )
    guess = next((shape for name, shape in CONTENTS.items() if (folder / name).is_file()), "unknown")
    try:
        about = read_about(folder)
    except InputError as error:
        return RecordingEntry(folder, guess, None, str(error))
    if about.shape not in CONTENTS.values():
        known = ", ".join(CONTENTS.values())
        return RecordingEntry(
            folder, about.shape, None, f"{folder / FACTS}: unknown shape {about.shape!r}; known: {known}"
        )
    return RecordingEntry(folder, about.shape, about)


class NamedTree(Protocol):
    """A tree, or what was made of one."""

    @property
    def model(self) -> str:
        """The name of the model."""

    @property
    def data(self) -> str:
        """The data set; empty if not known."""
        ...


def models(found: Sequence[NamedTree]) -> list[str]:
    """Return the model of each: `ConvNet2`, or `ConvNet2-digits` if others are on other data."""
    data: dict[str, set[str]] = {}
    for each in found:
        data.setdefault(each.model.lower(), set()).update({each.data} - {""})
    several = {model for model, known in data.items() if len(known) > 1}
    return [
        f"{each.model}-{each.data}" if each.data and each.model.lower() in several else each.model
        for each in found
    ]


Recording = TypeVar("Recording", Tree, GrowthTree, Curves, Profiles)

READERS: dict[str, Callable[[Path], Any]] = {
    TREES: read_tree,
    GROWTH: read_growth_tree,
    CURVES: read_curves,
    PROFILES: read_profiles,
}


@dataclass(frozen=True, slots=True)
class FoundRecording(Generic[Recording]):
    """A recording and its folder."""

    name: str
    """Folder of the recording, relative to the library's."""
    what: Recording


@dataclass(frozen=True, slots=True)
class Library:
    """The recordings below a folder."""

    folder: Path
    trees: Sequence[FoundRecording[Tree]]
    curves: Sequence[FoundRecording[Curves]]
    profiles: Sequence[FoundRecording[Profiles]]
    problems: Sequence[str] = field(default=())
    """One sentence for each incomplete or damaged recording."""
    unfinished: Mapping[str, int] = field(default_factory=dict)
    """Unfinished recording → number of its pieces."""
    growth: Sequence[FoundRecording[GrowthTree]] = ()
    """Growth trees by data set, model, hyper-parameters and seed."""

    def __len__(self) -> int:
        return len(self.trees) + len(self.growth) + len(self.curves) + len(self.profiles)


def read_library(folder: Path) -> Library:
    """Return all recordings below a folder; unreadable ones are among the problems."""
    held: dict[str, list[Any]] = {shape: [] for shape in READERS}
    problems = []
    for entry in entries(folder):
        if entry.about is None:
            problems.append(entry.problem)
            continue
        try:
            what = READERS[entry.shape](entry.folder)
        except InputError as error:
            problems.append(str(error))
        else:
            held[entry.shape].append(FoundRecording(_name(entry.folder, folder), what))
    trees = sorted(held[TREES], key=lambda tree: in_order(tree.what))
    growth = sorted(held[GROWTH], key=lambda tree: in_growth_order(tree.what))
    return Library(folder, trees, held[CURVES], held[PROFILES], problems, unfinished(folder), growth)


def _name(folder: Path, below: Path) -> str:
    return folder.name if folder == below else folder.relative_to(below).as_posix()


def read_growth_trees(paths: Iterable[Path]) -> tuple[GrowthTree, ...]:
    """Return the growth trees in folders and below, each once, in order."""
    found: dict[Path, GrowthTree] = {}
    for path in paths:
        here = located(Path(path))
        folders = list(recording_folders(here))
        if not folders:
            raise InputError(f"{path}: no growth trees in it; give the folder of one, or of several")
        found |= {folder.resolve(): read_growth_tree(folder) for folder in folders}
    return tuple(sorted(found.values(), key=in_growth_order))
