"""Where a recording comes from: what made it, on which device, from which code, when."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rota import __file__ as package
from rota import __version__

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
