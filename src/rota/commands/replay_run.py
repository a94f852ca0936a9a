"""`rota run --replay`: the best trial of a run once more, alone, as it came about."""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from typing import Any

from rota.commands.say import say
from rota.commands.typed import typed
from rota.core.errors import ConfigError, InputError
from rota.execution.lineage import Lineage, best_lineage
from rota.execution.orders import Done
from rota.execution.retrain import retrain
from rota.library.real_run import resume


def replay(args: argparse.Namespace, settings: Sequence[str] = ()) -> int:
    """Train it; prints how good it is after each part, and how good it was then."""
    if args.config or args.out or args.set or args.repeat or args.resume or args.export:
        raise ConfigError("--replay: goes along with what was recorded; give only the folder")
    real = resume(args.replay, typed(), settings)
    if not real.folder.begun():
        raise InputError(f"{args.replay}: nothing has been trained there yet; --resume goes on with it")
    lineages = [best_lineage(real.folder.books(seed).journal) for seed in real.folder.begun()]
    seed, lineage = max(
        zip(real.folder.begun(), lineages, strict=True), key=lambda pair: pair[1].stages[-1].metric
    )
    config, books = real.order.config, real.folder.again
    books.make()
    books.checkpoints.claim(f"{lineage.run} again")
    fleet = config.engine.fleet()
    workers = config.engine.workers(fleet, real.order.assignment(seed, books, real.folder.path))
    try:
        done, there = [], workers.nodes()
        first = next(number for number, slot in enumerate(fleet.slots) if slot.node in there)
        for answer in retrain(lineage, workers, books.checkpoints, first, fleet.slots[first].node):
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
