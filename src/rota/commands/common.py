"""Shared by commands: what they print, the command line as typed, given files, and advice."""

import argparse
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Timer
from typing import TextIO

from rota.core.files import located, printable_lines


def say(
    *words: object, sep: str = " ", end: str = "\n", file: TextIO | None = None, flush: bool = False
) -> None:
    """Print, with all that is no text as escapes."""
    print(printable_lines(sep.join(map(str, words))), end=end, file=file or sys.stdout, flush=flush)


WORDS: ContextVar[Sequence[str]] = ContextVar("WORDS", default=())
"""All that came after `rota`."""


def typed() -> str:
    """The command, but for what it says about results that were there before."""
    return shlex.join(["rota", *(word for word in WORDS.get() if word != "--replace")])


def given_file(text: str) -> Path:
    """Return where a file or folder is that the user names; a note says so if it is a shipped one."""
    path = Path(text)
    found = located(path)
    if found != path:
        say(f"note: {path}: not here, the shipped one is used ({found})", file=sys.stderr)
    return found


KEYS = {
    "simulate": {"schedulers", "cluster", "cost", "allocations", "slots", "clusters", "seeds"},
    "run": {
        "scheduler",
        "allocation",
        "backend",
        "local",
        "ray",
        "slurm",
        "trial",
        "training",
        "site",
        "kinds",
    },
    "train": {"setup", "budget_s", "budget_steps", "epochs", "epoch", "changes", "decisions"},
    "record": {"profiles", "curves", "trees"},
    "learn": {"recordings", "stages", "episodes", "method", "seeds", "placement"},
}
"""Command → keys by which its configurations are told from others."""
SAME = {"evaluate": "learn"}
"""Command → whose configurations it takes."""


def advice(args: argparse.Namespace) -> str:
    """Return for which command the configuration is that was given, if for another; else nothing."""
    given = getattr(args, "config", None) or ()
    found = [_about(path, args.command) for path in ([given] if isinstance(given, Path) else given)]
    return next(filter(None, found), "")


def _about(path: Path, command: str) -> str:
    try:
        table = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError:
        return ""
    except (ValueError, RecursionError):
        return _of_trace(command, path)
    counts = {command: len(keys & set(table)) for command, keys in KEYS.items()}
    meant = max(counts, key=counts.__getitem__)
    if counts[meant] <= counts.get(SAME.get(command, command), 0):
        return ""
    return f"This is a configuration of rota {meant}: rota {meant} {path}"


def _of_trace(command: str, path: Path) -> str:
    """What to do with a file that is not a configuration."""
    from rota.core.errors import InputError
    from rota.workload.formats import guess

    try:
        known = guess(path)
    except InputError:
        return ""
    if command == "simulate":
        return f"This is a trace ({known}): rota simulate --trace {path}"
    return f"This is a trace ({known}), not a configuration; one names it as trace in [workload]"


SLOW_S = 1.5
MESSAGE = "compiling the simulator: once per version, about half a minute"


@contextmanager
def compiling(total: int, unit: str) -> Iterator[Callable[[], object]]:
    """Explain a wait, if it is one: by a line, and on a terminal by a bar, which a call moves on."""
    from tqdm import tqdm

    terminal = sys.stderr.isatty()
    timer = Timer(SLOW_S, say, [MESSAGE], {"file": sys.stderr})
    timer.start()
    try:
        with tqdm(
            total=total, desc="compiling", unit=unit, delay=SLOW_S, leave=False, disable=not terminal
        ) as bar:
            yield bar.update
    finally:
        timer.cancel()
