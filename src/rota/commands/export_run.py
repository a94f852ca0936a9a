"""`rota run --export`: the best trial of a finished run, in a file of its own."""

from dataclasses import dataclass
from pathlib import Path

from rota.core.atomic import written
from rota.core.errors import ConfigError
from rota.execution.best import read_best
from rota.execution.folder import RealFolder
from rota.execution.reading import read_picture


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    file: Path
    trial: int
    seed: int

    def said(self) -> str:
        return f"{self.file}: trial {self.trial} of seed {self.seed}, as it was after its best report"


def check_export(file: Path) -> None:
    """Raise ConfigError, before anything is trained, if there is such a file already."""
    if file.exists():
        raise ConfigError(f"--export {file}: is there already; choose another name")


def export(folder: RealFolder, file: Path) -> Exported | None:
    """Write what the best trial of all repetitions saved; None if nothing was measured."""
    found: list[tuple[float, int, int]] = []
    for seed in folder.begun():
        picture, _ = read_picture(folder.books(seed).journal)
        if (best := picture.best) is not None:
            found.append((picture.trials[best].best, best, seed))
    if not found:
        return None
    _, trial, seed = max(found, key=lambda each: each[0])
    content = read_best(folder.books(seed)).content
    with written(file) as stream:
        stream.write(content)
    return Exported(file, trial, seed)
