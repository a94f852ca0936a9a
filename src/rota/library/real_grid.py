"""Real runs at the points of a grid: a folder for each, begun and resumed as a whole."""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rota.config.bind import facts
from rota.core.errors import InputError
from rota.core.files import read_json, write_file
from rota.execution.folder import RealFolder

FILE = "grid.json"
"""The file with the points, which is written before anything else."""
FORMAT = "rota grid of real runs"


@dataclass(frozen=True, slots=True)
class GridPointRun:
    """The run at a point of a grid."""

    name: str
    """Name of the point, and of its folder."""
    parameters: dict[str, object]
    """Varied values by dotted key."""
    config: str
    """Configuration in full, as TOML."""

    @property
    def table(self) -> dict[str, Any]:
        """The configuration as a table."""
        return tomllib.loads(self.config)


@dataclass(frozen=True, slots=True)
class _GridFacts:
    format: str
    command: str
    points: tuple[GridPointRun, ...]


@dataclass(frozen=True, slots=True)
class RealGrid:
    """The folder of real runs at the points of a grid."""

    path: Path
    command: str
    points: tuple[GridPointRun, ...]

    @classmethod
    def is_one(cls, path: Path) -> bool:
        """Return whether a folder is that of a grid."""
        return (path / FILE).is_file()

    @classmethod
    def begin(cls, path: Path, points: Sequence[GridPointRun], command: str) -> "RealGrid":
        """Begin runs at all points in a new folder; each begins when it is its turn."""
        folder = RealFolder(path)
        if cls.is_one(path):
            raise folder.has_a_run()
        folder.make_own()
        grid = cls(path, command, tuple(points))
        each = [{name: getattr(point, name) for name in GridPointRun.__slots__} for point in grid.points]
        found = {"format": FORMAT, "command": command, "points": each}
        write_file(path / FILE, json.dumps(found, indent=2) + "\n")
        return grid

    @classmethod
    def read(cls, path: Path) -> "RealGrid":
        """Return the grid in a folder; raises InputError if its file is damaged."""
        again = "bring it back, or begin anew in another folder"
        found = facts(_GridFacts, read_json(path / FILE, again), path / FILE, again)
        names = [point.name for point in found.points]
        twice = len(set(names)) < len(names)
        if found.format != FORMAT or twice or any(map(_is_elsewhere, names)):
            raise InputError(f"{path / FILE}: does not list the points of a grid; {again}")
        return cls(path, found.command, found.points)

    def folder(self, point: GridPointRun) -> RealFolder:
        """Return the folder of a point."""
        return RealFolder(self.path / point.name)

    def is_complete(self, point: GridPointRun) -> bool:
        """Return whether the run of a point is complete."""
        return self.folder(point).result.is_file()

    def run(
        self,
        point: GridPointRun,
        kind: Any,
        command: str,
        settings: Sequence[str] = (),
        *,
        anew: bool = False,
    ) -> Any:
        """Return the run of a point, of this kind of `RunInFolder`: begun now, or resumed."""
        folder = self.folder(point)
        if not folder.config.exists():
            kind.begin(kind.read(point.table, folder.config), folder.path, command)
        return kind.resume(folder.path, command, settings, anew=anew)

    def record(self, point: GridPointRun) -> dict[str, Any]:
        """Return what came of the run of a point, with its parameters."""
        found = read_json(self.folder(point).result, "bring it back")
        return {"point": point.name, **point.parameters, **found}


def _is_elsewhere(name: str) -> bool:
    return not name or name != Path(name).name or name in (".", "..")


def parameters_of(folder: Path) -> dict[str, object]:
    """Return at which point of a grid the run in a folder is; nothing if it is of none."""
    if not RealGrid.is_one(folder.parent):
        return {}
    grid = RealGrid.read(folder.parent)
    return next((point.parameters for point in grid.points if point.name == folder.name), {})
