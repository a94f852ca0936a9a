"""`rota trace`: convert, describe and make up workloads, and draw worlds from them."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands.common import DRAW_MODELS, STARTUP, draw_into, given_file, say
from rota.workload.formats import FORMATS

if TYPE_CHECKING:
    from rota.workload.jobs import Workload

QUICK_JOBS = 100

GENERATE_FLAGS: tuple[tuple[str, type, str, str], ...] = (
    ("--jobs", int, "N", "how many (1000)"),
    ("--gpus", int, "N", "the cluster that the load refers to (64)"),
    ("--load", float, "X", "GPU time asked for ÷ GPU time there is (0.85)"),
    ("--arrivals", str, "KIND", "poisson or bursty (bursty)"),
    ("--burstiness", float, "X", "how many times faster jobs arrive in a burst (10)"),
    ("--median-s", float, "S", "median of the durations (1800)"),
    ("--seed", int, "N", "the same seed gives the same workload (0)"),
)

Parsers = Any
"""What `ArgumentParser.add_subparsers` returns; its class is private."""


def add_parser(subparsers: Parsers) -> None:
    """Add `trace` and its verbs. Nothing heavy is imported for it."""
    trace = subparsers.add_parser("trace", help="convert, describe and make up traces of jobs")
    verbs = trace.add_subparsers(dest="verb", required=True, metavar="{convert,describe,generate,worlds}")
    _add_convert(verbs.add_parser("convert", help="rewrite a public trace as one plain CSV"))
    _add_describe(verbs.add_parser("describe", help="say what is in a trace"))
    _add_generate(verbs.add_parser("generate", help="make up a workload at a chosen load"))
    help_worlds = "draw worlds to compare schedulers on: windows of traces, on clusters sized by contention"
    _add_worlds(verbs.add_parser("worlds", help=help_worlds))


def run(args: argparse.Namespace) -> int:
    """Do what the verb says; return the exit code."""
    verbs = {"convert": _convert, "describe": _describe, "generate": _generate, "worlds": _worlds}
    verbs[args.verb](args)
    return 0


def _add_convert(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    _add_target(parser)
    parser.add_argument("--jobs", type=int, metavar="N", help="keep only the first N jobs to arrive")


def _add_describe(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    parser.add_argument("--gpus", type=int, metavar="N", help="also give the load on a cluster of N GPUs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--figure", type=Path, metavar="PNG", help="also draw it into this file")


def _add_source(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("trace", type=given_file, metavar="TRACE", help="the file to read")
    names = f"one of {', '.join(FORMATS)}, or a function of yours, as file.py:function; guessed if not given"
    add("--format", metavar="NAME", help=names)
    option = "set an option of a function of yours"
    add("--set", action="append", default=[], metavar="OPTION=VALUE", help=option)
    add("--seed", type=int, default=0, metavar="N", help="draws what the trace leaves out (0)")
    add("--draw-models", action="store_true", help=DRAW_MODELS)
    add("--startup-s", type=float, metavar="S", help=STARTUP)
    add("--quick", action="store_true", help=f"only the first {QUICK_JOBS} jobs")


def _add_generate(parser: argparse.ArgumentParser) -> None:
    """Add `generate`: what is given on the command line replaces defaults of `SyntheticConfig`."""
    for flag, kind, metavar, meaning in GENERATE_FLAGS:
        parser.add_argument(flag, type=kind, default=argparse.SUPPRESS, metavar=metavar, help=meaning)
    parser.add_argument("--quick", action="store_true", help=f"at most {QUICK_JOBS} jobs")
    _add_target(parser)


def _add_worlds(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("traces", nargs="*", type=given_file, metavar="TRACE", help="files to draw from")
    add("--synthetic", type=int, default=0, metavar="N", help="also from N workloads that are made up")
    add("--first-seed", type=int, default=3000, metavar="N", help="seed of the first of these (3000)")
    add("--by-group", action="store_true", help="each group of a trace (a virtual cluster) is one of its own")
    add("--groups", choices=("all", "even", "odd"), default="all", help="of these, those of such numbers")
    add("--windows", type=int, default=6, metavar="N", help="worlds of each trace (6)")
    add("--jobs", type=_range, default=(600, 1500), metavar="A-B", help="jobs of a world (600-1500)")
    levels = "mean completion time ÷ mean time alone, under fifo with backfill (1.5,2,3)"
    add("--contention", type=_numbers, default=(1.5, 2.0, 3.0), metavar="X,Y", help=levels)
    add("--largest", type=int, default=32, metavar="N", help="leave out jobs with more GPUs (32)")
    add("--seed", type=int, default=0, metavar="N", help="the same seed draws the same worlds (0)")
    add("--quick", action="store_true", help="one small world of each trace")
    add("--json", action="store_true", help="print JSON instead of a table")
    folder = "where to write them; worlds that are there are kept"
    add("--out", type=Path, required=True, metavar="DIR", help=folder)


def _range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(each) for each in text.split(",") if each)


def _add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="CSV", help="where to write it")
    parser.add_argument("--replace", action="store_true", help="even if that file is there already")


def _check_free(args: argparse.Namespace) -> None:
    """Raise an error if a file would be written over without being asked to."""
    from rota.core.errors import InputError

    if args.out.exists() and not args.replace:
        raise InputError(f"{args.out}: is there already; choose another name, or add --replace")


def _convert(args: argparse.Namespace) -> None:
    from rota.workload.plain import write

    _check_free(args)
    jobs = _read(args, keep=args.jobs)
    write(args.out, jobs)
    say(f"{args.out}: {len(jobs):,} jobs")


def _describe(args: argparse.Namespace) -> None:
    import json
    from dataclasses import asdict

    from rota.workload.describe import describe, text

    jobs = _read(args)
    described = describe(jobs, args.gpus)
    if args.figure is not None:
        from rota.figures.trace import trace_figure

        draw_into(trace_figure(jobs), args.figure)
    say(json.dumps(asdict(described), indent=2, allow_nan=False) if args.json else text(described))


def _generate(args: argparse.Namespace) -> None:
    from dataclasses import fields

    from rota.workload.plain import write
    from rota.workload.synthetic import SyntheticConfig, generate

    _check_free(args)
    names = {field.name for field in fields(SyntheticConfig)}
    given = {name: value for name, value in vars(args).items() if name in names}
    if args.quick:
        given["jobs"] = min(given.get("jobs", QUICK_JOBS), QUICK_JOBS)
    jobs = generate(SyntheticConfig(**given))
    write(args.out, jobs)
    say(f"{args.out}: {len(jobs):,} jobs")


def _worlds(args: argparse.Namespace) -> None:
    import json
    from dataclasses import asdict, replace

    from rota.core.errors import InputError
    from rota.library.processes import progress_bar
    from rota.simulator import worlds
    from rota.workload.formats import read
    from rota.workload.synthetic import SyntheticConfig, generate

    if not args.traces and args.synthetic < 1:
        raise InputError("trace worlds: no traces; give files, or --synthetic N")
    least, most = (60, 60) if args.quick else args.jobs
    settings = worlds.WorldSettings(
        1 if args.quick else args.windows, (least, most), args.contention, args.largest, args.seed
    )
    traces = [read(path, None, args.seed) for path in args.traces]
    if args.by_group:
        numbers = {"all": slice(None), "even": slice(0, None, 2), "odd": slice(1, None, 2)}[args.groups]
        traces = [part for trace in traces for part in worlds.parts_by_group(trace, least)[numbers]]
    for seed in range(args.first_seed, args.first_seed + args.synthetic):
        made = generate(SyntheticConfig(jobs=2 * most, gpus=64, load=0.85, seed=seed))
        traces.append(replace(made, name=f"synthetic-{seed}"))
    with progress_bar(len(traces) * settings.windows, "world") as bar:
        found = worlds.build(
            traces, args.out, settings, lambda facts: bar.update(),
            lambda why: say(f"note: {why}", file=sys.stderr),
        )  # fmt: skip
    if not found:
        few = f"or no group has {least} jobs" if args.by_group else f"or no trace has {least} jobs"
        raise InputError(f"trace worlds: none could be drawn: no window has such a contention, {few}")
    say(json.dumps([asdict(facts) for facts in found]) if args.json else worlds.text(found))


def _read(args: argparse.Namespace, keep: int | None = None) -> "Workload":
    """Return the trace, cut to what was asked for; its notes go to stderr."""
    from rota.config.load import override
    from rota.workload.formats import read

    options = override({}, args.set)
    jobs = read(args.trace, args.format, args.seed, args.draw_models, options=options)
    if args.startup_s is not None:
        jobs = jobs.with_startup(args.startup_s)
    for note in jobs.notes:
        say(f"note: {note}", file=sys.stderr)
    if args.quick:
        keep = QUICK_JOBS if keep is None else min(keep, QUICK_JOBS)
    if keep is None or keep >= len(jobs):
        return jobs
    head = jobs.head(keep)
    say(f"note: only the first {len(head):,} of {len(jobs):,} jobs", file=sys.stderr)
    return head
