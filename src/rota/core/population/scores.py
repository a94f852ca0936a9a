"""Scores of machines (`res.json`, `score.json`), slots made from them, and the names of this machine."""

import json
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

from rota.core.cluster import Cluster, Slot
from rota.core.errors import InputError, unknown
from rota.core.files import atomic_write


def is_here(name: str) -> bool:
    """Return whether a name or address belongs to this machine; at most a name server is asked."""
    if name in ("localhost", socket.gethostname()):
        return True
    return any(_is_own(family, address) for family, address in _addresses(name))


def _addresses(name: str) -> list[tuple[int, tuple[object, ...]]]:
    try:
        found = socket.getaddrinfo(name, 9, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return []  # unknown name
    return [(family, address) for family, _, _, _, address in found]


def _is_own(family: int, address: tuple[object, ...]) -> bool:
    """Return whether a packet to an address would be sent from that same address."""
    if ip_address(str(address[0]).partition("%")[0]).is_loopback:
        return True
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as line:
            line.connect(address)
            return bool(line.getsockname()[0] == address[0])
    except OSError:
        return False


DEVICES = ("CPU", "GPU")
RESOURCES_EXAMPLE = '{"CPU": {"10.0.0.1": 16}, "GPU": {"10.0.0.1": 1}}'
SCORES_EXAMPLE = '{"CPU": {"10.0.0.1": {"core": 16, "score": 1410.0}}, "GPU": {}}'


class ScoredDevice(NamedTuple):
    """One device type of a machine: its name or address, and CPU or GPU."""

    ip: str
    device: str

    def __str__(self) -> str:
        return f"{self.ip} {self.device}"


@dataclass(frozen=True, slots=True)
class Score:
    """The speed of one bundle of cores or GPUs of a machine."""

    core: int
    """Number of cores or GPUs in the bundle."""
    score: float
    """Images per second of training, or any other measure that is larger for a faster bundle."""
    spread: float | None = None
    """Spread of the measurements, in the same unit."""
    work: str = ""
    """Training that was measured; only scores of the same training are comparable."""


Resources = dict[ScoredDevice, int]
Scores = dict[ScoredDevice, Score]


class Scored(NamedTuple):
    """Slots with speeds from scores, and notes on entries without slots."""

    cluster: Cluster
    notes: tuple[str, ...]


def read_resources(path: Path) -> Resources:
    """Return the entries of `res.json`, CPU first; those with 0 cores are left out."""
    entries = _read(path, RESOURCES_EXAMPLE)
    found = {key: _count(path, str(key), value, least=0) for key, value in entries.items()}
    return {key: core for key, core in found.items() if core}


def read_scores(path: Path) -> Scores:
    """Return the entries of `score.json`, CPU first."""
    return {key: _score(path, key, value) for key, value in _read(path, SCORES_EXAMPLE).items()}


def write_scores(path: Path, scores: Mapping[ScoredDevice, Score]) -> None:
    """Write `score.json` atomically."""
    _write(path, {key: _entry(score) for key, score in scores.items()})


def cluster_of(
    scores: Mapping[ScoredDevice, Score],
    cpus: Mapping[str, int] | None = None,
    gpus: Mapping[str, int] | None = None,
) -> Scored:
    """Return a cluster of a node per machine and a slot per bundle that fits, CPU slots first.

    `cpus` and `gpus` are the totals per machine, in node order; without both, each entry is one bundle. Each
    slot of an entry has the full score as its speed. Cores beyond whole bundles are not used. An entry whose
    score is not above 0 gets no slot: it would never finish anything, and an allocation might wait for it
    forever.
    """
    totals = _totals(scores, cpus, gpus)
    slots: list[Slot] = []
    nodes: list[str] = []
    notes = [f"{key}: scored, but not in the cluster; left out" for key in scores if key not in totals]
    for ip in dict.fromkeys(key.ip for key in totals):
        keys = [key for device in DEVICES if (key := ScoredDevice(ip, device)) in totals]
        notes += [note for key in keys if (note := _no_slot(scores.get(key), key, totals[key]))]
        room = [(key.device, scores.get(key), totals[key]) for key in keys]
        made = [slot for bundles in room for slot in _slots(len(nodes), *bundles)]
        nodes += [ip] if made else []
        slots += made
    if not slots:
        raise InputError(f"scores: they give no slots ({'; '.join(notes) or 'there are none'})")
    return Scored(Cluster.of_slots(tuple(slots), tuple(nodes)), tuple(notes))


def _totals(
    scores: Mapping[ScoredDevice, Score], cpus: Mapping[str, int] | None, gpus: Mapping[str, int] | None
) -> dict[ScoredDevice, int]:
    if cpus is None and gpus is None:
        return {key: score.core for key, score in scores.items()}
    tables = zip(DEVICES, (cpus or {}, gpus or {}), strict=True)
    return {
        ScoredDevice(ip, device): total for device, table in tables for ip, total in table.items() if total
    }


def _slots(node: int, device: str, score: Score | None, total: int) -> list[Slot]:
    if score is None or not score.score > 0:
        return []
    return [Slot(node, score.score, device=device.lower())] * (total // score.core)


def _no_slot(score: Score | None, key: ScoredDevice, total: int) -> str:
    """Return why there is no slot; empty if there is one."""
    if score is None:
        return f"{key}: has no score; left out"
    if not score.score > 0:
        return f"{key}: score {score.score:g} is not above 0; left out"
    if total < score.core:
        return f"{key}: has {total}, and a bundle takes {score.core}; left out"
    return ""


def _read(path: Path, example: str) -> dict[ScoredDevice, Any]:
    """Return the entries of both tables."""
    fix = f"it should look like {example}"
    try:
        found = json.loads(expanded(path).read_text("utf-8"), object_pairs_hook=_once)
    except FileNotFoundError:
        raise InputError(f"{path}: does not exist; {fix}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); give another file") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}); {fix}") from None
    if not isinstance(found, dict) or not all(isinstance(table, dict) for table in found.values()):
        raise InputError(f"{path}: not a table per device; {fix}")
    for device in found:
        if device not in DEVICES:
            raise InputError(f"{path}: {unknown('device', device, DEVICES)}")
    return {
        ScoredDevice(ip, device): entry for device in DEVICES for ip, entry in found.get(device, {}).items()
    }


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} occurs twice")
    return found


def _score(path: Path, key: ScoredDevice, entry: Any) -> Score:
    if not isinstance(entry, dict) or not {"core", "score"} <= set(entry):
        raise InputError(f'{path}: {key}: {entry!r} should be like {{"core": 16, "score": 1410.0}}')
    core = _count(path, f"{key}: core", entry["core"], least=1)
    score = _number(path, f"{key}: score", entry["score"])
    spread = entry.get("spread")
    if spread is not None:
        spread = _number(path, f"{key}: spread", spread)
    return Score(core, score, spread, str(entry.get("work", "")))


def _count(path: Path, what: str, value: Any, *, least: int) -> int:
    if type(value) is not int or value < least:
        raise InputError(f"{path}: {what}: {value!r} is not a number of cores or GPUs; give {least} or more")
    return value


def _number(path: Path, what: str, value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise InputError(f"{path}: {what}: {value!r} is not a finite number")
    return float(value)


def _write(path: Path, entries: Mapping[ScoredDevice, Any]) -> None:
    tables: dict[str, dict[str, Any]] = {device: {} for device in DEVICES}
    for key, entry in entries.items():
        tables[key.device][key.ip] = entry
    with atomic_write(expanded(path)) as stream:
        stream.write((json.dumps(tables, indent=4, allow_nan=False) + "\n").encode())


def _entry(score: Score) -> dict[str, Any]:
    """Return an entry with the keys that other tools know first, then the optional ones."""
    entry: dict[str, Any] = {"core": score.core, "score": score.score}
    if score.spread is not None:
        entry["spread"] = score.spread
    return entry | ({"work": score.work} if score.work else {})


def expanded(path: Path) -> Path:
    """Return the path with `~` replaced, which not every shell does."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise InputError(f"{path}: there is no such user; give the folder in full") from None
