#!/usr/bin/env python3
"""Puts what was measured into README.md and docs/: run it after a file in results/measured has changed.

    python scripts/tables.py            # write the pages
    python scripts/tables.py --check    # only say what differs; exits with 1 if anything does

A table stands in a block of `text` right below

    <!-- results/measured/NAME.txt, made by: COMMAND -->

and is that file. (While there is no such file, there is no block.) A number in a sentence is written

    <!--=NAME-->VALUE<!--/-->

and is the value of NAME in results/measured/single.toml, which also says what command gave it.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SINGLE = "results/measured/single.toml"
TABLE = re.compile(
    r"^(<!-- (results/measured/\S+), made by: .+? -->\n)(?:\n```text\n.*?^```\n)?", re.MULTILINE | re.DOTALL
)
NUMBER = re.compile(r"<!--=([\w-]+)-->.*?<!--/-->", re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page differs")
    args = parser.parse_args()
    values = {name: each["value"] for name, each in tomllib.loads((ROOT / SINGLE).read_text()).items()}
    stale = [page for page in pages(ROOT) if filled(before := page.read_text(), ROOT, values) != before]
    for page in stale:
        print(f"{page.relative_to(ROOT)}: {'differs from what was measured' if args.check else 'written'}")
        if not args.check:
            page.write_text(filled(page.read_text(), ROOT, values))
    return 1 if args.check and stale else 0


def pages(root: Path) -> list[Path]:
    """All that people read."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def filled(text: str, root: Path, values: dict[str, str]) -> str:
    """A page with the tables and numbers that there are now."""

    def table(found: re.Match[str]) -> str:
        file = root / found[2]
        return f"{found[1]}\n```text\n{file.read_text()}```\n" if file.exists() else found[1]

    def number(found: re.Match[str]) -> str:
        if found[1] not in values:
            sys.exit(f"tables.py: {found[1]} is not in {SINGLE}; add it, with the command that gives it")
        return f"<!--={found[1]}-->{values[found[1]]}<!--/-->"

    return NUMBER.sub(number, TABLE.sub(table, text))


if __name__ == "__main__":
    sys.exit(main())
