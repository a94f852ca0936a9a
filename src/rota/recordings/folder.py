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
from rota.config.bind import facts, keys
from rota.core.errors import InputError
from rota.core.files import atomic_write, folder_lock, read_facts
from rota.core.table import Table, read_table

CHANGED = "+changes"
"""Suffix of the commit if the code had uncommitted changes."""
GIT_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of a recording: what is needed to interpret or repeat it."""

    device: str
    libraries: Mapping[str, str]
    """Name → version."""
    commit: str
    """Commit of rota's checkout; empty if it was installed without one."""
    seed: int | None
    """Seed; None if nothing was drawn, as in an imported recording."""
    command: str
    recorded_at: str
    """UTC time in ISO 8601."""
    rota: str
    """Version of rota."""
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
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
    """Return the provenance of what is recorded now; libraries that are not installed are left out."""
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
    """Return the commit of a checkout; empty if it is not in git."""
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
"""Name → unit; empty without one."""


@dataclass(frozen=True, slots=True)
class CsvSheet:
    """The contents of one CSV file."""

    columns: Columns
    rows: Iterable[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class File:
    """The facts on a CSV file in `recording.json`."""

    columns: dict[str, str]
    """Name → unit."""
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class _RecordingFacts:
    """The contents of `recording.json`."""

    format: str
    version: int
    shape: str
    what: dict[str, object]
    provenance: Provenance
    files: dict[str, File]


@dataclass(frozen=True, slots=True)
class About:
    """The contents of `recording.json`; CSV files are read when needed."""

    folder: Path
    shape: str
    what: Mapping[str, Any]
    provenance: Provenance
    files: Mapping[str, File]

    def facts(self, kind: type[T]) -> T:
        """Return the facts of a recording's shape."""
        return facts(kind, self.what, self.folder / FACTS, AGAIN, most=sys.float_info.max)  # settings, too

    def table(self, name: str) -> Table:
        """Return one of its CSV files, with its checksum checked."""
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


def facts_of(recording: object, kind: Any) -> dict[str, Any]:
    """Return the attributes of a recording that are facts of its shape, as plain values."""
    found = {name: getattr(recording, name) for name in keys(kind)}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items()}


def write_recording(
    folder: Path,
    shape: str,
    what: Mapping[str, Any],
    provenance: Provenance,
    sheets: Mapping[str, CsvSheet],
) -> None:
    """Write a recording or replace the one that is there; `recording.json` comes last."""
    contents = {name: _csv(sheet) for name, sheet in sheets.items()}
    files = {
        name: File(dict(sheets[name].columns), rows, hashlib.sha256(content).hexdigest())
        for name, (content, rows) in contents.items()
    }
    about = asdict(_RecordingFacts(FORMAT, VERSION, shape, dict(what), provenance, files))
    text = (json.dumps(about, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode()
    with folder_lock(folder), atomic_write(folder / FACTS) as stream:
        stream.write(text)
        with ExitStack() as streams:
            for name, (content, _) in contents.items():
                streams.enter_context(atomic_write(folder / name)).write(content)


def read_about(folder: Path, shape: str | None = None) -> About:
    """Return the contents of `recording.json`; raise if there is none, or of another shape."""
    path = folder / FACTS
    found = facts(_RecordingFacts, _facts(path), path, AGAIN)
    if shape is not None and found.shape != shape:
        raise InputError(f"{folder}: a recording of shape {found.shape!r}; expected {shape!r}")
    return About(folder, found.shape, found.what, found.provenance, found.files)


def complete(folder: Path) -> bool:
    """Return whether a complete recording is there; its CSV files are not checked."""
    return is_file(folder / FACTS)


def is_file(path: Path) -> bool:
    """Return whether a file is there; False for impossible names."""
    try:
        return path.is_file()
    except OSError:
        return False


def _facts(path: Path) -> dict[str, Any]:
    finish = "let the recorder finish it, or give the folder of another"
    missing = f"{path.parent}: not a complete recording, it has no {path.name}; {finish}"
    other = "give the folder of one"
    return read_facts(path, FORMAT, VERSION, "a recording", missing=missing, other=other, again=AGAIN)


def _csv(sheet: CsvSheet) -> tuple[bytes, int]:
    """Return a table as text and its number of rows; numbers are exact, NaN is an empty field."""
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
