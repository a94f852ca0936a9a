"""What commands print: names in it come from files, and must not steer the terminal."""

import sys
from typing import TextIO

from rota.core.text import printable_lines


def say(
    *words: object, sep: str = " ", end: str = "\n", file: TextIO | None = None, flush: bool = False
) -> None:
    """Print, with all that is no text as escapes."""
    print(printable_lines(sep.join(map(str, words))), end=end, file=file or sys.stdout, flush=flush)
