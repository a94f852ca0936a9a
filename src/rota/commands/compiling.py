"""What people see while code is compiled, which happens once per version."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from rota.commands.say import say

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
