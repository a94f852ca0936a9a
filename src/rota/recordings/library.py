"""All that was recorded, read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from rota.core.errors import InputError
from rota.recordings.curve import SHAPE as CURVES
from rota.recordings.curve import Curves, read_curves
from rota.recordings.profile import SHAPE as PROFILES
from rota.recordings.profile import Profiles, read_profiles
from rota.recordings.store import entries, unfinished
from rota.recordings.tree import SHAPE as TREES
from rota.recordings.tree import Tree, in_order, read_tree

Recording = TypeVar("Recording", Tree, Curves, Profiles)

READERS: dict[str, Callable[[Path], Any]] = {
    TREES: read_tree,
    CURVES: read_curves,
    PROFILES: read_profiles,
}


@dataclass(frozen=True, slots=True)
class Held(Generic[Recording]):
    """A recording, and where it is."""

    name: str
    """Its folder, as seen from that of the library."""
    what: Recording


@dataclass(frozen=True, slots=True)
class Library:
    """The recordings below a folder."""

    folder: Path
    trees: Sequence[Held[Tree]]
    curves: Sequence[Held[Curves]]
    profiles: Sequence[Held[Profiles]]
    problems: Sequence[str] = field(default=())
    """A sentence for each recording that is not complete, or damaged."""
    unfinished: Mapping[str, int] = field(default_factory=dict)
    """The number of pieces there are of each recording that is being made."""

    def __len__(self) -> int:
        return len(self.trees) + len(self.curves) + len(self.profiles)


def read_library(folder: Path) -> Library:
    """All recordings below a folder; what cannot be read is among the problems."""
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
            held[entry.shape].append(Held(_name(entry.folder, folder), what))
    trees = sorted(held[TREES], key=lambda tree: in_order(tree.what))
    return Library(folder, trees, held[CURVES], held[PROFILES], problems, unfinished(folder))


def _name(folder: Path, below: Path) -> str:
    return folder.name if folder == below else folder.relative_to(below).as_posix()
