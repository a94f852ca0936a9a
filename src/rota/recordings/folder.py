"""The folder of a recording: CSV files, and `recording.json` with their meaning and provenance."""

import csv
import hashlib
import io
import json
import math
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from rota import __file__ as package
from rota import __version__
from rota.config.bind import facts
from rota.core.errors import InputError
from rota.core.files import atomic_write, folder_lock, parsed
from rota.core.table import Table, read_table

CHANGED = "+changes"
"""Follows the commit if the code was not exactly that of it."""
GIT_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a reader needs to know to judge a recording, or to make it again."""

    device: str
    libraries: Mapping[str, str]
    """Name → version."""
    commit: str
    """Of rota's checkout; empty if it was installed without one."""
    seed: int | None
    """None if nothing was drawn here, as when it was imported."""
    command: str
    recorded_at: str
    """UTC, ISO 8601."""
    rota: str
    """Version."""
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"libraries": dict(self.libraries)}

    @property
    def made_with(self) -> str:
        """The device and the code."""
        libraries = " ".join(f"{name} {release}" for name, release in self.libraries.items())
        commit = self.commit[:10] + (CHANGED if self.commit.endswith(CHANGED) else "")
        parts = (self.device, libraries, f"rota {self.rota}", commit)
        return " · ".join(part for part in parts if part)


def provenance(
    *,
    device: str,
    seed: int | None,
    command: str,
    libraries: Sequence[str] = ("numpy",),
    note: str = "",
    now: datetime | None = None,
) -> Provenance:
    """That of what is recorded now, by this code; libraries that are not installed are left out."""
    versions = ((name, _version(name)) for name in libraries)
    return Provenance(
        device=device,
        libraries={name: release for name, release in versions if release},
        commit=commit_of(Path(package).parent),
        seed=seed,
        command=command,
        recorded_at=(now or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds"),
        rota=__version__,
        note=note,
    )


def commit_of(folder: Path) -> str:
    """The commit that a folder of code was checked out from; empty if git does not keep it."""
    if not _git(folder, "ls-files", "."):
        return ""  # another project's repository, with this one installed somewhere inside
    commit = _git(folder, "rev-parse", "HEAD")
    return commit + CHANGED if commit and _git(folder, "status", "--porcelain", "--", ".") else commit


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=GIT_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


FORMAT = "rota recording"
VERSION = 1
FACTS = "recording.json"
AGAIN = "move the folder away and record or import it again"

T = TypeVar("T")

Cell = str | int | float
Columns = Mapping[str, str]
"""Name → unit; empty for what has none."""


@dataclass(frozen=True, slots=True)
class CsvSheet:
    """The contents of one CSV file."""

    columns: Columns
    rows: Iterable[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class File:
    """What `recording.json` says of a CSV file."""

    columns: dict[str, str]
    """Name → unit."""
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class _RecordingFacts:
    """What `recording.json` says."""

    format: str
    version: int
    shape: str
    what: dict[str, object]
    provenance: Provenance
    files: dict[str, File]


@dataclass(frozen=True, slots=True)
class About:
    """What `recording.json` says; the CSV files are read when asked for."""

    folder: Path
    shape: str
    what: Mapping[str, Any]
    provenance: Provenance
    files: Mapping[str, File]

    def told(self, kind: type[T]) -> T:
        """What was recorded, as a recording of its shape says it."""
        return facts(kind, self.what, self.folder / FACTS, AGAIN, most=sys.float_info.max)  # settings, too

    def table(self, name: str) -> Table:
        """One of its CSV files, once it is sure that this is the one that was written."""
        path, file = self.folder / name, self.files.get(name)
        if file is None:
            raise InputError(f"{self.folder / FACTS}: does not list {name}; {AGAIN}")
        try:
            found = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}); {AGAIN}") from None
        if found != file.sha256:
            raise InputError(f"{path}: not the file that {FACTS} describes (checksum differs); {AGAIN}")
        table = read_table(path, list(file.columns))
        if len(table) != file.rows:
            raise InputError(f"{path}: {len(table)} rows where {FACTS} says {file.rows}; {AGAIN}")
        return table


def write_recording(
    folder: Path,
    shape: str,
    what: Mapping[str, Any],
    provenance: Provenance,
    sheets: Mapping[str, CsvSheet],
) -> None:
    """Write a recording, or replace the one that is there; `recording.json` comes last."""
    contents = {name: _csv(sheet) for name, sheet in sheets.items()}
    files = {
        name: {
            "columns": dict(sheets[name].columns),
            "rows": rows,
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        for name, (content, rows) in contents.items()
    }
    about = {
        "format": FORMAT,
        "version": VERSION,
        "shape": shape,
        "what": dict(what),
        "provenance": provenance.to_json(),
        "files": files,
    }
    text = (json.dumps(about, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode()
    with folder_lock(folder), atomic_write(folder / FACTS) as stream:
        stream.write(text)
        with ExitStack() as streams:
            for name, (content, _) in contents.items():
                streams.enter_context(atomic_write(folder / name)).write(content)


def read_about(folder: Path, shape: str | None = None) -> About:
    """What a complete recording says of itself; an error if it is none, or not of this shape."""
    path = folder / FACTS
    found = facts(_RecordingFacts, _facts(path), path, AGAIN)
    if shape is not None and found.shape != shape:
        raise InputError(f"{folder}: a recording of shape {found.shape!r}; expected {shape!r}")
    return About(folder, found.shape, found.what, found.provenance, found.files)


def complete(folder: Path) -> bool:
    """Whether a recording is there that says so itself; its CSV files are not looked at."""
    return is_file(folder / FACTS)


def is_file(path: Path) -> bool:
    """Whether a file is there; there is none under a name that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def _facts(path: Path) -> dict[str, Any]:
    try:
        found = parsed(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path.parent}: not a complete recording, it has no {path.name}; "
            "let the recorder finish it, or give the folder of another"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); {AGAIN}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"{path}: not the facts of a recording; give the folder of one")
    if found.get("version") != VERSION:
        version = found.get("version")
        raise InputError(f"{path}: version {version!r}, this one of rota reads {VERSION}; {AGAIN}")
    return found


def _csv(sheet: CsvSheet) -> tuple[bytes, int]:
    """A table as text, and its number of rows; numbers read back exactly, NaN is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(sheet.columns)
    rows = 0
    for row in sheet.rows:
        writer.writerow(list(_cells(row)))
        rows += 1
    return text.getvalue().encode(), rows


def _cells(row: Sequence[Cell]) -> Iterator[Cell]:
    for cell in row:
        nothing = isinstance(cell, float) and math.isnan(cell)
        yield "" if nothing else float(cell) if isinstance(cell, float) else cell
