"""Schedulers simulated on worlds; what was made is kept."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from rota.core.costs import RESTART
from rota.core.durations import Durations
from rota.core.files import write_file
from rota.core.policy import Policy
from rota.library.processes import Workers, call_all, progress_bar
from rota.library.simulate import digest, warm_up_once
from rota.results.metrics import measure
from rota.results.world_ratios import WorldResult
from rota.simulator.jobs import simulate
from rota.simulator.worlds import TraceWorld, WorldFacts

SHORT_S = 10.0
"""Jobs shorter than this count as so long in slowdowns."""


def family_of(facts: WorldFacts) -> str:
    """Return the family of a world: the letters with which the name of its trace begins."""
    found = re.match(r"[^\W\d_]+", facts.family)
    return found.group() if found else facts.family


def bench(
    worlds: Sequence[TraceWorld],
    policies: Mapping[str, Policy],
    durations: Durations,
    kept: Path,
    workers: Workers = 1,
) -> list[WorldResult]:
    """Simulate every world under every scheduler; results that are in the file are not made again."""
    before = _read(kept)
    plan = [(world, name, policy) for world in worlds for name, policy in policies.items()]
    keys = [
        f"{world.facts.name} {name} "
        f"{digest(world.jobs, world.cluster, policy, RESTART, 'fastest', None, durations)}"
        for world, name, policy in plan
    ]
    left = [number for number, key in enumerate(keys) if key not in before]
    found = {key: before[key] for key in keys if key in before}
    for policy in {type(each): each for each in policies.values()}.values() if left else ():
        warm_up_once(policy, RESTART)
    calls = [(*plan[number], durations) for number in left]
    with progress_bar(len(plan), "simulation", initial=len(plan) - len(left)) as bar:
        for place, made in call_all(_result, calls, workers, {type(each) for each in policies.values()}):
            found[keys[left[place]]] = made
            before[keys[left[place]]] = made
            _write(kept, before)
            bar.update()
    return [found[key] for key in keys]


def _result(world: TraceWorld, name: str, policy: Policy, durations: Durations) -> WorldResult:
    done = simulate(world.jobs, world.cluster, policy, durations=durations)
    measured = measure(done.timeline, world.jobs, world.cluster)
    slowdown = np.maximum(measured.times.jct_s / np.maximum(world.jobs.solo_s, SHORT_S), 1.0)
    return WorldResult(
        world.facts.name, family_of(world.facts), world.facts.contention, name, done.knows,
        measured.metrics.avg_jct_s, measured.metrics.p99_jct_s, float(slowdown.mean()),
        float(world.jobs.solo_s.mean()),
    )  # fmt: skip


def _read(file: Path) -> dict[str, WorldResult]:
    """Return what was kept; nothing if it cannot be read, for it can be made again."""
    try:
        return {key: WorldResult(**row) for key, row in json.loads(file.read_text("utf-8")).items()}
    except (OSError, ValueError, TypeError):
        return {}


def _write(file: Path, results: Mapping[str, WorldResult]) -> None:
    write_file(file, json.dumps({key: asdict(each) for key, each in results.items()}))
