"""The command line: `rota <command> …`.

Exit codes: 0 done, 1 a run failed, 2 the user's mistake (one line that says how to fix it), 130 interrupted.
Anything else is a bug and shows its traceback.

A command is a module with `add_parser(subparsers)` and `run(args) -> int`. To add one: write its file in
`rota/commands`, add its line to COMMANDS. It imports what is heavy inside `run`, so that help is instant.
"""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from rota import __doc__ as summary
from rota import __version__
from rota.commands.typed import WORDS
from rota.core.errors import InputError, RotaError

COMMANDS = {
    "simulate": "rota.commands.simulate",
    "trace": "rota.commands.trace",
    "recordings": "rota.commands.recordings",
    "plot": "rota.commands.plot",
    "report": "rota.commands.report",
    "train": "rota.commands.train",
    "record": "rota.commands.record",
    "score": "rota.commands.score",
    "learn": "rota.commands.learn",
    "evaluate": "rota.commands.evaluate",
    "run": "rota.commands.run",
    "status": "rota.commands.status",
    "compare": "rota.commands.compare",
}
EXTRAS = {
    **dict.fromkeys(("torch", "torchvision", "gymnasium", "tensorboardX", "sklearn"), "train"),
    "tensorflow": "tensorflow",
    **dict.fromkeys(("cloudpickle", "pandas"), "sweeps"),
    "lightning": "lightning",
    "ray": "ray",
}
"""What some commands need → the extra it comes with."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output (`| head`) has seen enough; the flush at exit must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # what a shell reports for a program that SIGPIPE ended


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rota", description=summary)
    parser.add_argument("--version", action="version", version=f"rota {__version__}")
    parser.set_defaults(verbose=0)
    subparsers = parser.add_subparsers(dest="command", metavar="command", title="commands")
    for module in COMMANDS.values():
        import_module(module).add_parser(subparsers)
    for each in (parser, *subparsers.choices.values()):
        each.add_argument(
            "-v",
            "--verbose",
            action="count",
            default=argparse.SUPPRESS,
            help="log to stderr what is being done; twice: why",
        )
    return parser


def _run(argv: Sequence[str] | None) -> int:
    try:
        parser = build_parser()
        args = parser.parse_args(argv)
        if args.command is None:
            parser.print_help(sys.stderr)
            return 2
        _log_to_stderr(args.verbose)
        WORDS.set(sys.argv[1:] if argv is None else argv)
        code: int = import_module(COMMANDS[args.command]).run(args)
        return code
    except RotaError as error:
        print("rota: error:", " ".join(str(error).splitlines()), file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        extra = EXTRAS[error.name]
        print(
            f"rota: error: needs {error.name}; install it with: bash scripts/setup.sh {extra}, or "
            f'pip install "rota[{extra}]"',
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print("rota: interrupted", file=sys.stderr)
        return 130


def _log_to_stderr(verbose: int) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    log = logging.getLogger("rota")
    log.handlers = [handler]
    log.setLevel([logging.WARNING, logging.INFO, logging.DEBUG][min(verbose, 2)])
