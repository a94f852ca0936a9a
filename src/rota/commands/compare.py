"""`rota compare`: how far a simulation is off the real run."""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands.common import command_line, say
from rota.core.errors import ConfigError

if TYPE_CHECKING:
    from rota.results.fidelity.compare import RunPair, TimelineComparison
    from rota.results.fidelity.text import Limits

    Found = Sequence[tuple[RunPair, TimelineComparison]]

FORMATS = (".png", ".svg")
FILE = "fidelity"
"""What files in the folder of `--out` are called."""


def add_parser(subparsers: Any) -> None:
    """Add `compare`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "compare",
        help="how far a simulation is off the real run",
        description="Align the timelines of a real run and of a simulation of the same work, and say how far "
        "makespan, completion times and the time of single intervals are off. Both are folders of runs, of "
        "a population or of jobs; of several runs those of the same name are compared.",
    )
    add = parser.add_argument
    add("real", type=Path, metavar="REAL", help="what rota run wrote")
    add("simulated", type=Path, metavar="SIMULATED", help="what rota simulate wrote")
    add("--json", action="store_true", help="print what was found as JSON")
    add(
        "--figure",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="draw it, into a .png or .svg; may be repeated",
    )
    add("--out", type=Path, metavar="DIR", help="write the table, numbers and, without --figure, the figure")
    add(
        "--within",
        metavar="M,J",
        help="exit with 1 if makespan or mean JCT are off by more than so many per cent, like 5,8",
    )


def run(args: argparse.Namespace) -> int:
    """Compare; prints a table for each pair of runs."""
    limits = _limits(args.within)
    for file in args.figure:
        if file.suffix not in FORMATS:
            raise ConfigError(f"--figure {file}: give a name that ends in {' or '.join(FORMATS)}")

    from rota.results.fidelity.compare import compare, paired
    from rota.results.fidelity.text import over_seeds, table

    pairs, notes = paired(args.real, args.simulated)
    for note in notes:
        say(f"note: {note}", file=sys.stderr)
    found = [(pair, compare(*pair.timelines())) for pair in pairs]
    exceeded = _exceeded(found, limits)
    tables = [table(pair.title, comparison) for pair, comparison in found]
    text = "\n\n".join(filter(None, [*tables, over_seeds([comparison for _, comparison in found])]))
    say(json.dumps(_record(args, found, exceeded)) if args.json else text)
    if args.out:
        numbers = json.dumps(_record(args, found, exceeded), indent=2)
        _write({args.out / f"{FILE}.json": numbers, args.out / f"{FILE}.txt": text})
    files = args.figure or [args.out / f"{FILE}{suffix}" for suffix in FORMATS if args.out]
    _draw(args, found, files)
    for text in exceeded:
        say(f"rota: {text}", file=sys.stderr)
    return 1 if exceeded else 0


def _limits(text: str | None) -> "Limits | None":
    if text is None:
        return None
    from rota.results.fidelity.text import Limits

    try:
        makespan, jct = (float(word) for word in text.split(","))
    except ValueError:
        makespan = jct = math.nan
    if not (makespan >= 0.0 and jct >= 0.0):
        raise ConfigError(f"--within {text}: give two numbers, 0 or more, of makespan and mean JCT, like 5,8")
    return Limits(makespan, jct)


def _exceeded(found: "Found", limits: "Limits | None") -> list[str]:
    if limits is None:
        return []
    return [f"{pair.title}: {text}" for pair, comparison in found for text in limits.exceeded(comparison)]


def _record(args: argparse.Namespace, found: "Found", exceeded: list[str]) -> dict[str, Any]:
    from rota.results.fidelity.text import record

    pairs = [{"name": pair.name, "seed": pair.seed, **record(comparison)} for pair, comparison in found]
    limits = {} if args.within is None else {"within": args.within, "exceeded": exceeded}
    return {"real": str(args.real), "simulated": str(args.simulated), **limits, "pairs": pairs}


def _write(texts: dict[Path, str]) -> None:
    """Write files; says on stderr which."""
    from rota.core.files import write_file

    for file, text in texts.items():
        write_file(file, f"{text}\n")
        say(file, file=sys.stderr)


def _draw(args: argparse.Namespace, found: "Found", files: list[Path]) -> None:
    """Draw a sheet per pair; with several, the name of the pair is in that of its file."""
    if not files:
        return
    from rota.figures.fidelity import fidelity_figure
    from rota.figures.page import write_figure

    command = command_line(args, "real", "simulated", "--figure", "--out")
    for pair, comparison in found:
        figure = fidelity_figure(pair, comparison, command)
        for file in files:
            named = file.with_stem(f"{file.stem}-{_slug(pair)}") if len(found) > 1 else file
            write_figure(figure, named)
            say(named, file=sys.stderr)


def _slug(pair: "RunPair") -> str:
    words = "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in pair.name)
    return words if pair.seed is None else f"{words}-seed{pair.seed}"
