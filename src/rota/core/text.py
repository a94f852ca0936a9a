"""Text for people: rows as aligned columns."""

from collections.abc import Sequence


def aligned(
    rows: Sequence[Sequence[str]],
    left: int = 1,
    *,
    last_left: bool = False,
    gap: int = 3,
    least: int = 0,
) -> list[str]:
    """Return rows of equal length as lines: the first `left` columns to the left, the others to the right.

    `last_left` puts the last column to the left, too. Columns are `gap` spaces apart; the first is at `least`
    so wide.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[0] = max(widths[0], least)
    to_left = {*range(left), *([len(widths) - 1] if last_left else [])}
    return [
        (" " * gap)
        .join(
            cell.ljust(width) if place in to_left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        .rstrip()
        for row in rows
    ]
