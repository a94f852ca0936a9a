"""Worlds to compare schedulers on: windows of consecutive jobs of traces, on clusters sized by contention.

Clusters are sized as in `rota.simulator.windows`: by the contention that is asked for.

    DIR/worlds.json          the settings and all worlds
    DIR/NAME.csv             the jobs of a world, the first of them submitted at 0 s
    DIR/NAME-history.csv     the jobs of the trace that had ended before, if any
    DIR/NAME.json            what is known of the world; written last, so that it is complete
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rota.core.cluster import Cluster
from rota.core.errors import ConfigError, InputError
from rota.core.files import write_file
from rota.core.text import aligned
from rota.simulator.windows import contention, sized
from rota.workload import plain
from rota.workload.history import with_history
from rota.workload.jobs import Workload

GPUS_PER_NODE = 8
MOST_HISTORY = 20_000  # jobs of a history, the last ones
TRIES = 12  # windows that are drawn for a world until one can be sized


@dataclass(frozen=True, slots=True)
class WorldSettings:
    """How worlds are drawn from traces."""

    windows: int = 6
    """Number of worlds of each trace."""
    jobs: tuple[int, int] = (600, 1500)
    """Least and largest number of jobs of a world."""
    contentions: tuple[float, ...] = (1.5, 2.0, 3.0)
    """Contentions, in turn."""
    largest: int = 32
    """Jobs with more GPUs are left out."""
    seed: int = 0

    def __post_init__(self) -> None:
        least, most = self.jobs
        if not 2 <= least <= most:
            raise ConfigError(f"worlds: jobs are {least} to {most}; give 2 or more, the larger number last")
        if self.windows < 1 or self.largest < 1 or self.seed < 0:
            raise ConfigError("worlds: windows and largest must be at least 1, the seed 0 or more")
        if not self.contentions or min(self.contentions) <= 1.0:
            raise ConfigError("worlds: contentions must be above 1: jobs have to wait")


@dataclass(frozen=True, slots=True)
class WorldFacts:
    """What is known of a world."""

    name: str
    family: str
    """Name of the trace, or of a part of it."""
    first: int
    """Position in the trace of the first job, among those that are small enough."""
    jobs: int
    nodes: int
    contention: float
    """Contention that was asked for."""
    measured: float
    """Contention of fifo with backfill on these nodes."""
    history: int
    """Number of jobs that had ended before."""


@dataclass(frozen=True, slots=True)
class TraceWorld:
    """A world that was read: its jobs, with their history, and its cluster."""

    facts: WorldFacts
    jobs: Workload
    cluster: Cluster


def parts_by_group(trace: Workload, least: int) -> list[Workload]:
    """Return the jobs of each group that has so many, as traces of their own."""
    counts = np.bincount(trace.group, minlength=len(trace.groups))
    chosen = [each for each in np.argsort(-counts, kind="stable").tolist() if counts[each] >= least]
    return [
        replace(
            trace.take(np.flatnonzero(trace.group == number)), name=f"{trace.name}-{trace.groups[number]}"
        )
        for number in chosen
    ]


def draw(
    trace: Workload, number: int, settings: WorldSettings
) -> tuple[WorldFacts, Workload, Workload | None]:
    """Return a world of a trace: what is known of it, its jobs, and those that had ended before.

    Raises InputError if no window has the contention on any cluster.
    """
    wanted = settings.contentions[number % len(settings.contentions)]
    small = trace.take(np.flatnonzero(trace.gpus <= settings.largest))
    least, most = settings.jobs
    if len(small) < least:
        few = f"{len(small)} jobs of at most {settings.largest} GPUs"
        raise InputError(f"{trace.name}: {few}; ask for fewer jobs in a world")
    seed = int.from_bytes(hashlib.sha256(f"{trace.name}/{number}".encode()).digest()[:8], "little")
    rng = np.random.default_rng([settings.seed, seed])
    for _ in range(TRIES):
        count = int(rng.integers(least, min(most, len(small)) + 1))
        first = int(rng.integers(len(small) - count + 1))
        jobs = small.window(first, count)
        cluster = sized(jobs, wanted, GPUS_PER_NODE)
        if cluster is not None:
            break
    else:
        raise InputError(f"{trace.name}: no window has a contention of {wanted:g}; ask for another one")
    before = small.submit_s + small.solo_s <= small.submit_s[first]
    before[first:] = False
    rows = np.flatnonzero(before)[-MOST_HISTORY:]
    history = small.take(rows) if len(rows) else None
    name = f"{trace.name}-{number}"
    facts = WorldFacts(
        name, trace.name, first, count, len(cluster.nodes), wanted, contention(jobs, cluster), len(rows)
    )
    return facts, jobs, history


def build(
    traces: Sequence[Workload],
    out: Path,
    settings: WorldSettings,
    done: Callable[[WorldFacts], None] = lambda facts: None,
    skipped: Callable[[str], None] = lambda why: None,
) -> list[WorldFacts]:
    """Draw the worlds of traces and write them to a folder; those that are there already are kept.

    Raises InputError if the folder has worlds that were drawn in another way.
    """
    names = [trace.name for trace in traces]
    if len(set(names)) < len(names):
        raise InputError(f"worlds: two traces are called {max(names, key=names.count)}; rename one")
    head, about = out / "worlds.json", {"settings": asdict(settings), "traces": names}
    plain_about = json.loads(json.dumps(about))
    if head.exists():
        before = {key: value for key, value in _read_json(head).items() if key != "worlds"}
        if before != plain_about:
            raise InputError(f"{out}: has worlds that were drawn in another way; give another folder")
    out.mkdir(parents=True, exist_ok=True)
    write_file(head, json.dumps({**about, "worlds": []}, indent=1))
    found = []
    for trace, number in [(trace, number) for trace in traces for number in range(settings.windows)]:
        file = out / f"{trace.name}-{number}.json"
        if file.exists():
            facts = WorldFacts(**_read_json(file))
        else:
            try:
                facts, jobs, history = draw(trace, number, settings)
            except InputError as why:
                skipped(str(why))
                continue
            plain.write(out / f"{facts.name}.csv", jobs)
            if history is not None:
                plain.write(out / f"{facts.name}-history.csv", history)
            write_file(file, json.dumps(asdict(facts), indent=1))
        found.append(facts)
        done(facts)
    write_file(head, json.dumps({**about, "worlds": [asdict(facts) for facts in found]}, indent=1))
    return found


def read_worlds(folder: Path) -> Iterator[TraceWorld]:
    """Yield the worlds of a folder, as they were drawn. Raises InputError if there is none."""
    head = folder / "worlds.json"
    if not head.exists():
        raise InputError(f"{folder}: has no worlds.json; make it with rota trace worlds TRACE --out {folder}")
    listed = _read_json(head).get("worlds", [])
    if not listed:
        raise InputError(f"{head}: names no worlds; make them again with rota trace worlds")
    for each in listed:
        facts = WorldFacts(**each)
        jobs, history = plain.read(folder / f"{facts.name}.csv"), folder / f"{facts.name}-history.csv"
        if history.exists():
            jobs = with_history(jobs, plain.read(history))
        yield TraceWorld(facts, jobs, Cluster.uniform(facts.nodes, GPUS_PER_NODE))


def text(worlds: Sequence[WorldFacts]) -> str:
    """Return a table of worlds."""
    header = ("world", "jobs", "from", "history", "nodes", "contention", "asked")
    rows: list[tuple[str, ...]] = [header]
    for w in worlds:
        counts = (f"{count:,}" for count in (w.jobs, w.first, w.history, w.nodes))
        rows.append((w.name, *counts, f"{w.measured:.2f}", f"{w.contention:g}"))
    return "\n".join(aligned(rows))


def _read_json(file: Path) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read: {error}; make the worlds again") from None
    return found
