"""The files of a placement agent: plain arrays, never a pickle.

agent.json      what it is and how it was learned; with it, an agent is complete
weights.npz     its weights
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rota.config.bind import facts as bind_facts
from rota.core.arrays import Singles
from rota.core.atomic import written
from rota.core.errors import InputError
from rota.core.facts import parsed

FORMAT = "rota placement agent"
VERSION = 1
FACTS, WEIGHTS = "agent.json", "weights.npz"
SHIPPED = Path(__file__).parents[2] / "agents" / "place"
AGAIN = "learn it again: rota learn config/learn/place.toml"


class Weights(NamedTuple):
    """Of three layers, with what is added in each, and of the straight way past them.

    The first two have a row per input, so that compiled code can add up whole rows.
    """

    a: Singles
    a0: Singles
    b: Singles
    b0: Singles
    c: Singles
    c0: Singles
    past: Singles


def write_agent(folder: Path, weights: Weights, about: Mapping[str, Any]) -> None:
    """Write an agent; `agent.json` comes last."""
    stream = io.BytesIO()
    np.savez(stream, **weights._asdict())
    content = stream.getvalue()
    facts = {"format": FORMAT, "version": VERSION, **about, "sha256": hashlib.sha256(content).hexdigest()}
    with written(folder / WEIGHTS) as file:
        file.write(content)
    with written(folder / FACTS) as file:
        file.write((json.dumps(facts, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode())
    read_weights.cache_clear()  # another agent may have been there


def read_about(folder: Path) -> dict[str, Any]:
    """What an agent is and how it was learned."""
    path = folder / FACTS
    try:
        found = parsed(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder}: no placement agent in it ({FACTS} is missing); {AGAIN}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); {AGAIN}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"{path}: not the facts of a placement agent; {AGAIN}")
    if found.get("version") != VERSION:
        raise InputError(
            f"{path}: an agent of version {found.get('version')!r}, this rota reads {VERSION}; {AGAIN}"
        )
    bind_facts(Spent, found, path, AGAIN, others=True)
    return found


@dataclass(frozen=True, slots=True)
class Spent:
    """What `agent.json` says that is counted on."""

    sha256: str
    updates: int = 0
    decisions: int = 0
    seconds: float = 0.0
    evaluation: dict[str, object] = field(default_factory=dict)
    config: dict[str, object] = field(default_factory=dict)


@cache
def read_weights(folder: Path) -> Weights:
    """Of an agent."""
    sha256 = read_about(folder).get("sha256")
    path = folder / WEIGHTS
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {AGAIN}") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise InputError(f"{path}: damaged or cut short (checksum differs from {FACTS}); {AGAIN}")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            return Weights(*(np.ascontiguousarray(found[name], np.float32) for name in Weights._fields))
    except (KeyError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: not the weights of a placement agent ({error}); {AGAIN}") from None
