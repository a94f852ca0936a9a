"""The file of an agent of any kind: `agent.json`, and plain arrays in `weights.npz`, never a pickle.

`agent.json` says what the agent does (`kind`), its network, what it sees (`features`), what it learned from
and how (`about`, `config`, `provenance`), how good it is (`evaluation`), and the checksum of the weights. To
add a kind of agent, add an entry to `KINDS`.
"""

import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.config.bind import facts
from rota.core.errors import InputError
from rota.core.files import atomic_write, parsed

Arrays = Mapping[str, NDArray[Any]]

FACTS, WEIGHTS = "agent.json", "weights.npz"
FORMAT, VERSION = "rota agent", 2
DAMAGE = (OSError, EOFError, AttributeError, KeyError, TypeError, RuntimeError, struct.error, zlib.error)


class AgentKind(NamedTuple):
    """What the agents of one kind do, and how one is learned."""

    does: str
    """What such an agent does, after its name: `places trials on slots`."""
    learn: str
    """Command that learns one."""
    file_1: str
    """Format that files of version 1 say; empty if there never were any."""

    @property
    def again(self) -> str:
        """The advice of an error in the file of such an agent."""
        return f"learn it again: {self.learn}"


KINDS = {
    "adaptation": AgentKind(
        "changes networks while they train", "rota learn --recordings PATH", "rota agent"
    ),
    "placement": AgentKind(
        "places trials on slots", "rota learn config/learn/place.toml", "rota placement agent"
    ),
    "schedule": AgentKind("schedules jobs", "rota learn config/learn/schedule.toml", ""),
    "joint": AgentKind("places trials and lets them grow", "rota learn config/learn/joint-growth.toml", ""),
}
"""Kind of an agent → what is particular to it."""
AGAIN = "learn it again: rota learn"


class Feature(NamedTuple):
    """A number that an agent sees, or several of the same meaning."""

    name: str
    size: int
    """How many numbers."""
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    """Content of `agent.json`, apart from the format and its version."""

    kind: str
    network: str
    """Name of the architecture."""
    options: dict[str, int | float | str] = field(default_factory=dict)
    """Options that the network was built with."""
    features: tuple[Feature, ...] = ()
    """What the agent sees, in the order of its inputs; empty in files of version 1."""
    about: dict[str, object] = field(default_factory=dict)
    """What it learned from, for how long, and from which seed."""
    config: dict[str, object] = field(default_factory=dict)
    """Configuration of learning."""
    provenance: dict[str, object] = field(default_factory=dict)
    """The command that learned it, device, libraries and date."""
    evaluation: dict[str, object] = field(default_factory=dict)
    """Measured quality, without the single cases."""
    sha256: str
    """Checksum of the weights."""

    @property
    def command(self) -> str:
        """The command that learned the agent; empty if its file does not say."""
        return str(self.provenance.get("command", ""))


def write_agent_file(folder: Path, found: AgentFacts, arrays: Arrays) -> None:
    """Write an agent to a folder, `agent.json` last; the checksum in `found` is replaced."""
    content = as_npz(arrays)
    checksum = hashlib.sha256(content).hexdigest()
    said = asdict(found) | {"features": [each._asdict() for each in found.features], "sha256": checksum}
    text = json.dumps(
        {"format": FORMAT, "version": VERSION, **said}, indent=2, allow_nan=False, ensure_ascii=False
    )
    with atomic_write(folder / WEIGHTS) as stream:
        stream.write(content)
    with atomic_write(folder / FACTS) as stream:
        stream.write((text + "\n").encode())


def read_facts(folder: Path, kind: str | None = None) -> AgentFacts:
    """Return what `agent.json` in a folder says.

    Raises InputError if there is none, if it is damaged, or if the agent is not of `kind`.
    """
    path, again = folder / FACTS, KINDS[kind].again if kind else AGAIN
    give = f"give the folder that rota learn wrote, or {again}"
    try:
        found = parsed(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder}: no agent in it ({FACTS} is missing); {give}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); {again}") from None
    there = kind_in(found)
    if there is None:
        raise InputError(f"{path}: not the facts of an agent; {give}")
    if found.get("version") not in (1, VERSION):
        raise InputError(
            f"{path}: an agent of version {found.get('version')!r}, this rota reads 1 and {VERSION}; {again}"
        )
    if there not in KINDS:
        raise InputError(f"{path}: an agent of kind {there!r}; this rota knows {', '.join(KINDS)}")
    if kind not in (None, there):
        raise InputError(
            f"{folder}: this agent {KINDS[there].does} (kind {there!r}); give one that {KINDS[kind].does} "
            f"(kind {kind!r}): {KINDS[kind].learn}"
        )
    if found["version"] == 1:
        found = _of_version_1(found, there)
    return facts(AgentFacts, found, path, KINDS[there].again, others=True)


def kind_in(found: object) -> str | None:
    """Return the kind of agent that parsed JSON is about; None if it is not about an agent."""
    if not isinstance(found, dict):
        return None
    if found.get("version") == 1 or "kind" not in found:
        return next((name for name, kind in KINDS.items() if found.get("format") == kind.file_1), None)
    return str(found["kind"]) if found.get("format") == FORMAT else None


def kind_of(folder: Path) -> str | None:
    """Return the kind of the agent in a folder, complete or damaged; None if there is none."""
    try:
        return kind_in(parsed((folder / FACTS).read_text("utf-8")))
    except (OSError, ValueError):
        return None


def _of_version_1(found: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the facts of version 1 as they are said now."""
    if kind == "placement":
        config = found.get("config", {})
        known = {"kind", "network", "config", "evaluation", "provenance", "sha256", "format", "version"}
        about = {name: value for name, value in found.items() if name not in known}
        seed = config.get("seed", 0) if isinstance(config, dict) else 0
        found = found | {"network": "scorer", "about": {"seed": seed, **about}}
    return found | {"kind": kind}


def read_arrays(folder: Path, found: AgentFacts) -> dict[str, NDArray[Any]]:
    """Return the weights of an agent by name; raises InputError if they are missing or damaged."""
    path, again = folder / WEIGHTS, KINDS[found.kind].again
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {again}") from None
    if hashlib.sha256(content).hexdigest() != found.sha256:
        raise InputError(f"{path}: damaged or cut short (checksum differs from {FACTS}); {again}")
    try:
        return read_npz(content)
    except ValueError as error:
        raise InputError(f"{path}: not the weights of this agent ({_short(error)}); {again}") from None


def check_features(folder: Path, found: AgentFacts, known: tuple[Feature, ...]) -> None:
    """Raise InputError if an agent sees something else than this version of rota shows it."""
    if found.features and [each[:2] for each in found.features] != [each[:2] for each in known]:
        raise another_version(folder, found, "it sees other features")


def another_version(folder: Path, found: AgentFacts, reason: object) -> InputError:
    """Return the error of an agent that this version of rota cannot use."""
    again = KINDS[found.kind].again
    return InputError(f"{folder / FACTS}: of another version of rota ({_short(reason)}); {again}")


def wrong_weights(folder: Path, found: AgentFacts, reason: object) -> InputError:
    """Return the error of weights that do not fit the network."""
    again = KINDS[found.kind].again
    return InputError(f"{folder / WEIGHTS}: not the weights of this agent ({_short(reason)}); {again}")


def _short(reason: object) -> str:
    return " ".join(str(reason).split())[:300]


def as_npz(arrays: Arrays) -> bytes:
    """Return the content of an .npz file with these arrays."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]  # by name
    return stream.getvalue()


def read_npz(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays in the content of an .npz file. Raises ValueError if it is damaged."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except (*DAMAGE, zipfile.BadZipFile) as error:
        raise ValueError(str(error) or repr(error)) from None
