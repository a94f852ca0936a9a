"""Files that were given to the wrong command: a trace for a configuration, or that of another command."""

import argparse
import tomllib
from pathlib import Path

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
