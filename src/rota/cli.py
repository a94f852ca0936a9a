"""The command line: `rota <command> …`.

Exit codes: 0 done, 1 a run failed, 2 the user's mistake (one line that says how to fix it), 130 interrupted.
Anything else is a bug and shows its traceback.

A command is a module with `add_parser(subparsers)` and `run(args) -> int`. To add one: write its file in
`rota/commands`, add its line to COMMANDS. It imports what is heavy inside `run`, so that help is instant.
"""

import argparse
import errno
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from rota import __doc__ as summary
from rota import __version__
from rota.commands.common import WORDS, advice, say
from rota.config.renamed import RenamedWarning
from rota.core.errors import ConfigError, InputError, RotaError
from rota.core.files import in_checkout, printable_lines

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
    "bench-schedulers": "rota.commands.bench_schedulers",
    "init": "rota.commands.init",
}
EXTRAS = {
    **dict.fromkeys(("torch", "torchvision", "gymnasium", "tensorboardX", "sklearn"), "train"),
    "tensorflow": "tensorflow",
    "lightning": "lightning",
    "ray": "ray",
}
"""What some commands need → the extra it comes with."""


FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""What a stream says that takes no more."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    if not _open_streams():
        _complain("standard output is closed; open it, or send it to a file")
        return 2
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output (`| head`) has seen enough.
        _drop_output()
        return 141  # what a shell reports for a program that SIGPIPE ended
    except OSError as error:
        if error.filename is not None or error.errno not in FULL:
            raise
        _drop_output()
        _complain(f"standard output cannot be written ({error.strerror}); not all of it is there")
        return 1


def _open_streams() -> bool:
    """Have streams to write to, which take every character; whether there was a standard output.

    Python has no stream where there is no file behind it (`>&-`), and the next file that is opened would take
    its place. What is printed to a standard error that is not there would go to standard output.
    """
    there = sys.stdout is not None
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")
    return there


def _drop_output() -> None:
    """Let what is still to be written go nowhere: the flush at exit must not complain either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> None:
    """Say what is wrong, if there is anywhere to say it."""
    with suppress(OSError):
        say("rota: error:", message, file=sys.stderr, flush=True)


class Parser(argparse.ArgumentParser):
    """A parser whose help is either written or an error: the original passes over what cannot be written."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; what they compute with is not imported."""
    parser = Parser(prog="rota", description=summary)
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
    args = argparse.Namespace()
    try:
        parser = build_parser()
        args = parser.parse_args(argv)
        if args.command is None:
            parser.print_help(sys.stderr)
            return 2
        _log_to_stderr(args.verbose)
        WORDS.set(sys.argv[1:] if argv is None else argv)
        with _warning_of_old_names():
            code: int = import_module(COMMANDS[args.command]).run(args)
        return code
    except RotaError as error:
        more = advice(args) if isinstance(error, ConfigError) else ""
        _complain(". ".join(filter(None, [" ".join(str(error).splitlines()), more])))
        return 2 if isinstance(error, InputError) else 1
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        _complain(f"needs {error.name}; install it with: {_how_to_install(EXTRAS[error.name])}")
        return 2
    except KeyboardInterrupt:
        print("rota: interrupted", file=sys.stderr)
        return 130


@contextmanager
def _warning_of_old_names() -> Iterator[None]:
    """Say on stderr, once, that a key or a flag has another name now."""
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, RenamedWarning):
            say("rota: warning:", message, file=sys.stderr)
        else:
            shown(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("default", RenamedWarning)
        warnings.showwarning = show
        yield


def _how_to_install(extra: str) -> str:
    return f"bash scripts/setup.sh {extra}" if in_checkout() else f'pip install "rota[{extra}]"'


class _Printable(logging.Formatter):
    """Lines of the log, whatever names are in them."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


def _log_to_stderr(verbose: int) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Printable("%(name)s: %(message)s"))
    log = logging.getLogger("rota")
    log.handlers = [handler]
    log.setLevel([logging.WARNING, logging.INFO, logging.DEBUG][min(verbose, 2)])
