"""`rota init`: copy what is shipped into a folder, to be edited."""

import argparse
from pathlib import Path
from typing import Any

from rota.commands.common import say
from rota.core.errors import InputError
from rota.core.files import FOLDERS, root, shipped_files


def add_parser(subparsers: Any) -> None:
    """Add `init`."""
    parser = subparsers.add_parser(
        "init",
        help="copy the example configurations into a folder, to edit them",
        description="Copies the configurations that come with rota, and what they need (traces, recordings), "
        "with the examples. Files that are there are never replaced.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="where to: a new folder, or . for this one")


def run(args: argparse.Namespace) -> int:
    """Copy; prints what to try next."""
    base, into = root(), args.folder
    files = list(shipped_files(base))
    if not files:
        raise InputError(f"{base}: no shipped files there; install rota again")
    if into.exists() and not into.is_dir():
        raise InputError(f"{into}: is not a folder; give another name")
    for folder in FOLDERS:
        if (into / folder).exists() or (into / folder).is_symlink():
            raise InputError(f"{into / folder}: is there already; give another folder, or move it away")
    try:
        for file in files:
            (into / file).parent.mkdir(parents=True, exist_ok=True)
            with (into / file).open("xb") as copy:
                copy.write((base / file).read_bytes())
    except OSError as error:
        raise InputError(f"{error.filename or into}: cannot be written: {error.strerror}") from None
    say(f"{into}: {len(files)} files, in {', '.join(FOLDERS)}; try: {_next(into)}")
    return 0


def _next(into: Path) -> str:
    simulate = "rota simulate config/simulate/shipped.toml"
    return simulate if into.resolve() == Path.cwd() else f"cd {into} && {simulate}"
