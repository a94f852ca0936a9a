"""`rota record`: train what a configuration asks for, and keep what was measured."""

import argparse
import sys
from pathlib import Path
from typing import Any

from rota.commands.common import command_line, given_file, say
from rota.core.errors import ConfigError

OUT = Path("results/recordings")


def add_parser(subparsers: Any) -> None:
    """Add `record`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "record",
        help="train for the record: profiles, curves, trees, growth trees",
        description="Train what the configuration asks for and write recordings. Stop it at any moment; the "
        "same command goes on from there.",
    )
    add = parser.add_argument
    add(
        "config",
        type=given_file,
        nargs="*",
        metavar="CONFIG",
        help="what to record, e.g. config/record/quick.toml",
    )
    add("--out", type=Path, default=OUT, metavar="FOLDER", help=f"where recordings go ({OUT})")
    add("--workers", type=int, metavar="N", help="processes side by side (one per core)")
    add(
        "--time-again",
        action="store_true",
        help="train nothing; measure the seconds per step of recorded growth trees again, on an idle machine",
    )
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    add("--help-config", action="store_true", help="list the keys of the configuration")
    add("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Record; prints the folder of each recording when it is complete."""
    if args.workers is not None and args.workers < 1:
        raise ConfigError(f"--workers {args.workers}: give 1 or more")

    from rota.config.bind import bind
    from rota.config.load import override, read
    from rota.training.recorder.record import RecordConfig

    if args.help_config:
        from rota.config.describe import help_text

        say(help_text(RecordConfig))
        return 0
    if not args.config:
        raise ConfigError("which configuration? Give a file, for example config/record/quick.toml")

    from rota.core.cluster import own_cores
    from rota.training.recorder.partial import RecordingProgress
    from rota.training.recorder.record import record

    command = command_line(args, "config", "--set")
    configs = [bind(RecordConfig, override(read(path), args.set), path) for path in args.config]
    try:
        with RecordingProgress(quiet=args.quiet) as progress:
            for config in configs:
                workers = args.workers or len(own_cores())
                for folder in record(
                    config, args.out, workers, command, progress, time_again=args.time_again
                ):
                    say(folder, flush=True)
    except KeyboardInterrupt:
        say("note: what was recorded is kept; the same command goes on from there", file=sys.stderr)
        raise
    return 0
