"""Progress of long work: a bar on a terminal and in a notebook."""

import sys
from typing import Any


def progress_bar(total: int, shown: bool | None, unit: str) -> Any:
    """Return a bar of `tqdm`; without `shown`, it is seen on a terminal and in a notebook only."""
    from tqdm import tqdm

    seen = (sys.stderr.isatty() or "ipykernel" in sys.modules) if shown is None else shown
    return tqdm(total=total, unit=unit, leave=False, disable=not seen, file=sys.stderr)
