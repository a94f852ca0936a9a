"""`rota learn` of a file with a `[schedule]` table: learn to schedule jobs."""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from rota.commands.common import refuse, say
from rota.commands.learn import OUT, SCHEDULE, bar, command_of
from rota.config.bind import bind
from rota.config.load import override, read
from rota.core.errors import ConfigError
from rota.core.files import folder_lock
from rota.learning.files import ScheduleHistoryRow
from rota.learning.scheduling.run import ScheduleRun, finish
from rota.learning.scheduling.training import ScheduleFile, worlds_of
from rota.policies.agents import read_facts


def run_schedule(args: argparse.Namespace) -> int:
    """Learn an agent of each seed; prints how good each is on the worlds for validation."""
    given = {"--recordings": args.recordings, "--pooled": args.pooled, "--live": args.live}
    refuse(given, f"{args.config} learns to schedule jobs, from none; leave it out")
    if args.workers not in (None, 1):
        raise ConfigError(
            f"--workers {args.workers}: agents that schedule learn in one process; leave it out"
        )
    found = [_learn(run, args) for run in _runs(args)]
    if args.json:
        say(json.dumps({"agents": found}))
        return 0
    for each in found:
        gain = math.exp(each["validation"]) - 1.0
        say(
            f"{each['agent']}: {each['updates']:,} updates, {each['episodes']:,} episodes in "
            f"{each['seconds']:.1f} s; objective {gain:+.1%} relative to the rule, on worlds for validation"
        )
    return 0


def _runs(args: argparse.Namespace) -> list[ScheduleRun]:
    """Return a run for each seed; a single seed uses the folder itself."""
    seeds = [f"{SCHEDULE}.seeds={args.seed}"] if args.seed else []
    table = override(_seen_from_here(read(args.config), args.config.parent), [*args.set, *seeds])
    config = bind(ScheduleFile, table, args.config).schedule
    out, worlds = args.out or OUT / args.config.stem, worlds_of(config)
    several = len(config.seeds) > 1
    return [
        ScheduleRun(out / f"seed{seed}" if several else out, config, seed, worlds) for seed in config.seeds
    ]


def _seen_from_here(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a table whose paths start at the folder of its file."""
    schedule = table.get(SCHEDULE)
    if isinstance(schedule, dict) and isinstance(schedule.get("start"), str):
        schedule["start"] = str(folder / schedule["start"])
    worlds = schedule.get("worlds") if isinstance(schedule, dict) else None
    if isinstance(worlds, dict) and isinstance(worlds.get("traces"), list):
        worlds["traces"] = [str(folder / str(path)) for path in worlds["traces"]]
    return table


def _learn(run: ScheduleRun, args: argparse.Namespace) -> dict[str, Any]:
    with folder_lock(run.folder):
        if not args.again:
            run.refuse_another()
        if not args.again and run.done:
            say(f"note: {run.folder} is learned already; --again learns it anew", file=sys.stderr)
        else:
            learner = run.begin(again=args.again)
            with bar(run.config.updates, " updates", args, initial=len(learner.rows)) as shown:

                def tell(row: ScheduleHistoryRow) -> None:
                    shown.set_postfix(validation=f"{row.validation:+.4f}", refresh=False)
                    shown.update()

                learner.learn(tell)
            learner.save()
            finish(run, learner, command_of(args))
        about = read_facts(run.folder).about
    named = ("seed", "updates", "episodes", "seconds", "validation")
    return {"agent": str(run.folder), **{name: about[name] for name in named}}
