"""How learning to place trials went, update by update: as plain CSV, and for TensorBoard."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rota.core.table import read_table
from rota.learning.history import write_rows

HISTORY, EVENTS = "updates.csv", "tensorboard"


class Row(NamedTuple):
    """How an update went."""

    update: int
    seconds: float
    """Since the beginning."""
    decisions: int
    ratio: float
    """How long it took, by lower bound: the mean over cases of the episode in which nothing was drawn."""
    entropy: float
    lr: float


def write_history(folder: Path, rows: Sequence[Row]) -> None:
    """Write all rows."""
    write_rows(folder / HISTORY, Row._fields, rows)


def read_history(folder: Path) -> list[Row]:
    """What was written."""
    table = read_table(folder / HISTORY, list(Row._fields))
    updates, decisions = (table.wholes(name).astype(int).tolist() for name in ("update", "decisions"))
    seconds, *others = (table.floats(name).tolist() for name in ("seconds", "ratio", "entropy", "lr"))
    return [Row(*row) for row in zip(updates, seconds, decisions, *others, strict=True)]


def write_events(folder: Path, rows: Iterable[Row]) -> None:
    """What TensorBoard shows of a folder."""
    from tensorboardX import SummaryWriter

    with SummaryWriter(str(folder / EVENTS)) as writer:
        for row in rows:
            for name in ("decisions", "ratio", "entropy", "lr"):
                writer.add_scalar(f"placement/{name}", getattr(row, name), row.update)
