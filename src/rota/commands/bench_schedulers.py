"""`rota bench-schedulers`: compare schedulers on worlds, with intervals."""

import argparse
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rota.commands.common import draw_into, say, workers
from rota.core.errors import ConfigError


def add_parser(subparsers: Any) -> None:
    """Add `bench-schedulers`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "bench-schedulers",
        help="compare schedulers on worlds of rota trace worlds: ratios to tiresias and srtf, with intervals",
    )
    add = parser.add_argument
    add(
        "--worlds",
        type=Path,
        required=True,
        action="append",
        metavar="DIR",
        help="a folder of worlds; repeat it",
    )
    which = "schedulers, also file.py:Class; by default lookahead and those that do not share GPUs"
    add("--schedulers", metavar="A,B,…", help=which)
    add(
        "--durations",
        default="none",
        metavar="WHAT",
        help="what they know: exact, none (default), noisy, predicted",
    )
    option = "set an option of a scheduler, as gittins.prior=2, or of durations, as durations.r2=0.5"
    add("--set", action="append", default=[], metavar="KEY=VALUE", help=option)
    add("--workers", type=workers, default=1, metavar="N", help="processes that share the simulations (1)")
    add("--json", action="store_true", help="print JSON on standard output, and nothing else")
    add("--figure", type=Path, metavar="FILE", help="draw the ratios: a .png, .svg or .pdf")
    kept = "where results are kept, so that none is made twice (bench.json in the first folder of worlds)"
    add("--results", type=Path, metavar="FILE", help=kept)
    add("--quick", action="store_true", help="only the first two worlds")


def run(args: argparse.Namespace) -> int:
    """Compare; prints tables or one JSON object, and draws a figure."""
    from rota.config.bind import bind
    from rota.config.load import override
    from rota.core.durations import Durations
    from rota.figures.page import check_format
    from rota.library.bench_schedulers import bench
    from rota.library.inputs import schedulers
    from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
    from rota.results.world_ratios import BASELINES, ratios, text
    from rota.simulator.worlds import read_worlds

    if args.figure is not None:
        check_format(args.figure)
    worlds = [world for folder in args.worlds for world in read_worlds(folder)]
    if len({world.facts.name for world in worlds}) < len(worlds):
        raise ConfigError("--worlds: two worlds have the same name; give each folder once")
    if args.quick:
        worlds = worlds[:2]
    names = [name.strip() for name in (args.schedulers or "").split(",") if name.strip()]
    if not names:
        names = [
            name for name in SCHEDULERS if name == "lookahead" or scheduler_class(name)().needs.sharing == 1
        ]
    names += [name for name in BASELINES if name not in names]
    options: dict[str, Any] = override({}, args.set)
    said = options.pop("durations", {})
    known = {"known": args.durations, **(said if isinstance(said, dict) else {"known": said})}
    durations = bind(Durations, known, "command line")
    policies = schedulers(names, lambda chosen: {}, options, "command line")
    kept = args.results or args.worlds[0] / "bench.json"
    found = bench(worlds, policies, durations, kept, args.workers)
    compared = ratios(found)
    if args.json:
        rows = {"ratios": [_row(each) for each in compared], "results": [_row(each) for each in found]}
        say(json.dumps(rows, allow_nan=False))
    else:
        say(text(compared))
    if args.figure:
        from rota.figures.bench import bench_figure

        draw_into(bench_figure(found, compared), args.figure)
    return 0


def _row(found: Any) -> dict[str, Any]:
    """Return a row of JSON; an end of an interval that one world does not give is null."""
    row = asdict(found)
    return {
        key: None if isinstance(each, float) and not math.isfinite(each) else each
        for key, each in row.items()
    }
