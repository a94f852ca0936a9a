"""The best trial of a finished run: exported, or trained once more, alone."""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rota.commands.common import say, typed
from rota.core.errors import ConfigError, InputError
from rota.core.files import write_file
from rota.execution.assignments import Done
from rota.execution.folder import RealFolder
from rota.execution.lineage import Lineage, best_lineage, retrain
from rota.execution.status import read_best, read_status
from rota.library.real_run import RealRun


def check_export(file: Path) -> None:
    """Raise ConfigError, before anything is trained, if there is such a file already."""
    if file.exists():
        raise ConfigError(f"--export {file}: is there already; choose another name")


def export(folder: RealFolder, file: Path) -> str:
    """Write what the best trial of all repetitions saved, if anything was measured; returns a sentence."""
    found: list[tuple[float, int, int]] = []
    for seed in folder.begun():
        status, _ = read_status(folder.paths(seed).journal)
        if (best := status.best) is not None:
            found.append((status.trials[best].best, best, seed))
    if not found:
        return f"rota: {file}: not written, for there is no best trial"
    _, trial, seed = max(found, key=lambda each: each[0])
    write_file(file, read_best(folder.paths(seed)).content)
    return f"{file}: trial {trial} of seed {seed}, as it was after its best report"


def retrain_best(args: argparse.Namespace, settings: Sequence[str] = ()) -> int:
    """Train it; prints how good it is after each part, and how good it was then."""
    if args.config or args.out or args.set or args.repeat or args.resume or args.export:
        raise ConfigError("--retrain-best: goes along with what was recorded; give only the folder")
    real = RealRun.resume(args.retrain_best, typed(), settings)
    if not real.folder.begun():
        raise InputError(f"{args.retrain_best}: nothing has been trained there yet; --resume goes on with it")
    lineages = [best_lineage(real.folder.paths(seed).journal) for seed in real.folder.begun()]
    seed, lineage = max(
        zip(real.folder.begun(), lineages, strict=True), key=lambda pair: pair[1].stages[-1].metric
    )
    config, paths = real.order.config, real.folder.again
    paths.make()
    paths.checkpoints.claim(f"{lineage.run} again")
    cluster = config.engine.cluster()
    workers = config.engine.workers(cluster, real.order.assignment(seed, paths, real.folder.path))
    try:
        done, there = [], workers.nodes()
        first = next(number for number, slot in enumerate(cluster.all_slots) if slot.node in there)
        for answer in retrain(lineage, workers, paths.checkpoints, first, cluster.all_slots[first].node):
            done.append(answer)
            say(_line(lineage, done), file=sys.stderr)
    finally:
        workers.close()
    found = _record(lineage, done)
    say(json.dumps(found) if args.json else _said(found))
    return 0


def _line(lineage: Lineage, done: list[Done]) -> str:
    stage = lineage.stages[len(done) - 1]
    steps = sum(each.steps for each in lineage.stages[: len(done)])
    sign = lineage.sign
    return f"step {steps}: {sign * done[-1].metric:.4f}, was {sign * stage.metric:.4f}"


def _record(lineage: Lineage, done: list[Done]) -> dict[str, Any]:
    stages = [
        {
            "steps": stage.steps,
            "hyper": dict(stage.hyper),
            "changes": list(stage.changes),
            "metric": None if math.isnan(answer.metric) else lineage.sign * answer.metric,
            "metric_then": None if math.isnan(stage.metric) else lineage.sign * stage.metric,
        }
        for stage, answer in zip(lineage.stages, done, strict=True)
    ]
    return {
        "trial": lineage.trial,
        "begins_as": lineage.root,
        "steps": sum(stage.steps for stage in lineage.stages),
        "metric": stages[-1]["metric"],
        "metric_then": stages[-1]["metric_then"],
        "computing_s": sum(answer.spent.computing_s for answer in done),
        "stages": stages,
    }


def _said(found: dict[str, Any]) -> str:
    return (
        f"trial {found['trial']} again, alone: {found['steps']:,} steps in {found['computing_s']:.1f} s, "
        f"{found['metric']:.4f} (in the population: {found['metric_then']:.4f})"
    )
