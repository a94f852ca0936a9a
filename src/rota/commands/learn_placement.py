"""`rota learn` of a file with a `[placement]` table: learn to place trials on unequal slots."""

import argparse
import json
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rota.commands.common import refuse, say
from rota.commands.learn import OUT, PLACEMENT, bar, command_of
from rota.config.bind import bind
from rota.config.load import override, read
from rota.core.cluster import own_cores
from rota.core.errors import ConfigError
from rota.core.files import folder_lock
from rota.core.processes import WorkerPool
from rota.learning.files import PlacementHistoryRow
from rota.learning.placement.compare import DISPATCHES, compare
from rota.learning.placement.config import PlacementAgentConfig, PlacementFile
from rota.learning.placement.outcome import PlacementComparison, read_comparison, table
from rota.learning.placement.run import PlacementRun, finish, learn, write_tried
from rota.library.processes import worker_pool
from rota.policies.agents import read_facts
from rota.policies.allocation.learned import Weights, read_weights


def run_placement(args: argparse.Namespace) -> int:
    """Learn, and compare the agent with the rules on cases it has not seen; prints the comparison."""
    _refuse_others(args)
    run = PlacementRun(args.out or OUT / args.config.stem, _config(args))
    with folder_lock(run.folder):
        if not args.again:
            run.refuse_another()
        if not args.again and run.tried:
            say(f"note: {run.folder} is learned already; --again learns it anew", file=sys.stderr)
        else:
            with workers_of(args) as pool:
                if args.again or not run.done:
                    _learn(run, pool, args)
                else:
                    _try_again(run, pool, args)
    _print(run.folder, args)
    return 0


def workers_of(args: argparse.Namespace) -> AbstractContextManager[WorkerPool]:
    """Return the pool of `--workers`; by default a process per core."""
    return worker_pool(args.workers or len(own_cores()))


def _refuse_others(args: argparse.Namespace) -> None:
    """Raise ConfigError for flags about recordings of networks that change."""
    given = {"--recordings": args.recordings, "--pooled": args.pooled, "--live": args.live}
    refuse(given, f"{args.config} learns to place trials, from none; leave it out")
    if args.seed and len(args.seed) > 1:
        raise ConfigError(f"--seed: {args.config} learns one agent; give one seed")


def _config(args: argparse.Namespace) -> PlacementAgentConfig:
    seeds = [f"{PLACEMENT}.seed={seed}" for seed in args.seed or ()]
    return bind(PlacementFile, override(read(args.config), [*args.set, *seeds]), args.config).placement


def _learn(run: PlacementRun, pool: WorkerPool, args: argparse.Namespace) -> None:
    learner = run.begin(again=args.again)
    with bar(run.config.updates, " updates", args, initial=len(learner.rows)) as shown:

        def tell(row: PlacementHistoryRow) -> None:
            shown.set_postfix(ratio=f"{row.ratio:.3f}", refresh=False)
            shown.update()

        learn(learner, pool, tell)
    found = tried(learner.network.weights, run.config, pool, args)
    finish(run, learner, found, command_of(args))


def _try_again(run: PlacementRun, pool: WorkerPool, args: argparse.Namespace) -> None:
    say(f"note: {run.folder} is learned already; it is tried on other cases", file=sys.stderr)
    weights, said = read_weights(run.folder), read_facts(run.folder)
    found = tried(weights, run.config, pool, args)
    write_tried(run, weights, said.about, said.provenance, found, command_of(args))


def tried(
    weights: Weights, config: PlacementAgentConfig, pool: WorkerPool, args: argparse.Namespace
) -> PlacementComparison:
    """Compare an agent with the rules, with a progress bar."""
    with bar(config.tests * len(DISPATCHES), " cases", args) as shown:
        return compare(weights, config.tests, pool, config.cases.goal, shown.update)


def _print(folder: Path, args: argparse.Namespace) -> None:
    known = read_facts(folder)
    spent: dict[str, Any] = {name: known.about[name] for name in ("updates", "decisions", "seconds")}
    rate = round(spent["decisions"] / spent["seconds"], 1) if spent["seconds"] else 0.0
    if args.json:
        found = {"agent": str(folder), **spent, "decisions_per_s": rate, "evaluation": known.evaluation}
        say(json.dumps(found))
        return
    said = f"{spent['updates']:,} updates, {spent['decisions']:,} decisions in {spent['seconds']:.1f} s"
    say(f"{folder}: {said}\n{table(read_comparison(folder)[0])}")
