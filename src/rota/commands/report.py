"""`rota report`: one page, to be opened in a browser, that shows results of whatever kind."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rota.commands.common import command_line, say

OUT = Path("report.html")
MB = 1e6


def add_parser(subparsers: Any) -> None:
    """Add `report`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "report",
        help="one page in HTML that shows results: tables, timelines, curves",
        description="Write one HTML page that shows what was simulated, run, learned and evaluated, in any "
        "mix. It needs no network and no server: open it in a browser, or send it.",
    )
    add = parser.add_argument
    add("results", nargs="+", type=Path, metavar="RESULTS", help="folders of results, or folders of those")
    add("--out", type=Path, default=OUT, metavar="FILE", help=f"the page ({OUT})")
    add("--title", default="", help="what it is called; what is compared if not given")


def run(args: argparse.Namespace) -> int:
    """Write the page; prints where it is."""
    from rota.core.files import write_file
    from rota.report.assemble import find, page, sections

    found = find(args.results)
    for path in found.incomplete:
        say(f"note: {path}: not a complete run, left out", file=sys.stderr)
    with _progress() as tick:
        made = list(sections(found, tick))
    command = command_line(args, "results", *(["--out"] if args.out != OUT else []), "--title")
    text = page(args.title or _title(made), command, made)
    write_file(args.out, text)
    say(f"{args.out} ({len(text.encode()) / MB:.1f} MB)")
    return 0


def _title(made: list[Any]) -> str:
    """Return what is in it, in plain words; the title of the only section."""
    if len(made) == 1:
        return str(made[0].title)
    kinds = list(dict.fromkeys(section.kind for section in made))
    said = " and ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)
    return said[:1].upper() + said[1:]


@contextmanager
def _progress() -> Iterator[Callable[[str], object]]:
    """Show on a terminal what is being worked on."""
    from rota.library.processes import progress_bar

    with progress_bar(None, " runs") as bar:

        def tick(name: str) -> None:
            bar.set_description(name)
            bar.update()

        yield tick
