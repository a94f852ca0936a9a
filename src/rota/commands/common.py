"""Shared by commands: what they print, the command line as typed, given files, and advice."""

import argparse
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, TextIO

from rota.config.renamed import warn_renamed
from rota.core.errors import ConfigError
from rota.core.files import located, printable_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def say(
    *words: object, sep: str = " ", end: str = "\n", file: TextIO | None = None, flush: bool = False
) -> None:
    """Print, with control characters as escapes."""
    print(printable_lines(sep.join(map(str, words))), end=end, file=file or sys.stdout, flush=flush)


DRAW_MODELS = "give jobs whose stages are not known models that have some"
STARTUP = "seconds that each start costs (what the trace says, or 0)"
"""Help of flags that several commands have."""

WORDS: ContextVar[Sequence[str]] = ContextVar("WORDS", default=())
"""All that came after `rota`."""


def typed() -> str:
    """Return the command as typed, without `--replace`."""
    return shlex.join(["rota", *(word for word in WORDS.get() if word != "--replace")])


def command_line(args: argparse.Namespace, *parts: str) -> str:
    """Return the command line that says the same, for the provenance of what is made.

    `parts` are the arguments that matter, in order: `config`, `--set` for each of its values, or
    `--recordings+` once for all of them.
    """
    words = ["rota", args.command]
    for part in parts:
        given = getattr(args, part.strip("-+").replace("-", "_"), None)
        values = given if isinstance(given, list | tuple) else [given] if given else []
        texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
        if not part.startswith("-"):
            words += texts
        elif given is True:
            words.append(part)
        elif part.endswith("+"):
            words += [part[:-1], *texts] if texts else []
        else:
            words += [word for text in texts for word in (part, text)]
    return shlex.join(words)


def refuse(given: Mapping[str, object], why: str) -> None:
    """Raise ConfigError for the first of some flags that is given, though it means nothing here."""
    for flag, value in given.items():
        if value:
            raise ConfigError(f"{flag}: {why}")


def given_file(text: str) -> Path:
    """Return where a file or folder is that the user names; a note says so if it is a shipped one."""
    path = Path(text)
    found = located(path)
    if found != path:
        say(f"note: {path}: not here, the shipped one is used ({found})", file=sys.stderr)
    return found


def renamed_flag(args: argparse.Namespace, old: str, new: str) -> None:
    """Have what was given with an old flag under the new one; raises ConfigError if both are given."""
    there, here = (flag.lstrip("-").replace("-", "_") for flag in (old, new))
    if (given := getattr(args, there)) is None:
        return
    if getattr(args, here) is not None:
        raise ConfigError(f"{old}: is the old name of {new}; give only that")
    warn_renamed(old, new)
    setattr(args, here, given)


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
        "job",
        "kinds",
    },
    "train": {"setup", "budget_s", "budget_steps", "epochs", "epoch", "changes", "decisions"},
    "record": {"profiles", "curves", "trees", "growth"},
    "learn": {"recordings", "stages", "episodes", "method", "seeds", "placement", "joint", "schedule"},
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
    """Return what to do with a file that is not a configuration."""
    from rota.core.errors import InputError
    from rota.workload.formats import guess

    try:
        known = guess(path)
    except InputError:
        return ""
    if command == "simulate":
        return f"This is a trace ({known}): rota simulate --trace {path}"
    return f"This is a trace ({known}), not a configuration; one names it as trace in [workload]"


def workers(text: str) -> int | str:
    """Return the value of a flag --workers. Raises argparse's error if there are no such workers."""
    from rota.core.errors import ConfigError
    from rota.library.processes import check_workers

    try:
        return check_workers(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def preset_name(preset: str | None, mode: str | None) -> str | None:
    """Return the allocation that `--preset` and `--mode` stand for, like `spa-era`; None if not given."""
    from rota.core.errors import unknown
    from rota.policies.allocation.registry import MODES, NAMED

    if mode and not preset:
        raise ConfigError(f"--mode {mode}: says how a preset allocates; give --preset spa or gpa, too")
    if preset and preset.lower() not in NAMED:
        raise ConfigError(f"--preset: {unknown('preset', preset, NAMED)}")
    if mode and mode.upper() not in MODES:
        raise ConfigError(f"--mode: {unknown('mode', mode, MODES)}")
    return f"{preset}-{mode or 'ERA'}".lower() if preset else None


def draw_into(figure: "Figure", file: Path) -> None:
    """Write a figure, and say where it is."""
    from rota.figures.page import write_figure

    write_figure(figure, file)
    say(f"note: drawn into {file}", file=sys.stderr)


SLOW_S = 1.5
MESSAGE = "compiling the simulator: once per version, about a minute"


@contextmanager
def compiling(total: int, unit: str) -> Iterator[Callable[[], object]]:
    """Explain a wait, if it is one: by a line, and on a terminal by a bar, which a call moves on."""
    from rota.library.processes import progress_bar

    timer = Timer(SLOW_S, say, [MESSAGE], {"file": sys.stderr})
    timer.start()
    try:
        with progress_bar(total, unit, desc="compiling", delay=SLOW_S) as bar:
            yield bar.update
    finally:
        timer.cancel()
