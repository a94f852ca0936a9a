"""How learning went, update by update: as plain CSV, and for TensorBoard."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rota.core.atomic import written
from rota.core.table import read_table

ROWS = 1000
"""In a stage at most; each sums up as many updates as that takes."""
FILE = "updates.csv"
EVENTS = "tensorboard"


class Row(NamedTuple):
    """Some updates, one after the other: means over their episodes."""

    stage: int
    """From 0 on."""
    episodes: int
    """Of all scenarios, since the stage began, when they were over."""
    objective: float
    """What is made small: −log p × what an episode was worth."""
    reward: float
    accuracy: float
    entropy: float
    """Of the sequences of a scenario, in nats: 0 if the agent is sure."""
    lr: float
    temperature: float


def window(updates: int) -> int:
    """How many updates a row sums up."""
    return max(1, -(-updates // ROWS))


def write_history(folder: Path, rows: Sequence[Row]) -> None:
    """Write all rows."""
    write_rows(folder / FILE, Row._fields, rows)


def write_rows(path: Path, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    with written(path) as stream:
        stream.write(text.getvalue().encode())


def read_history(folder: Path) -> list[Row]:
    """What was written."""
    table = read_table(folder / FILE, list(Row._fields))
    whole = [table.wholes(name).astype(int).tolist() for name in Row._fields[:2]]
    others = [table.floats(name).tolist() for name in Row._fields[2:]]
    return [Row(*row) for row in zip(*whole, *others, strict=True)]


def write_events(folder: Path, rows: Iterable[Row]) -> None:
    """Add rows to what TensorBoard shows of a folder; stages follow on each other."""
    from tensorboardX import SummaryWriter

    before = 0
    last = Row(0, 0, *[0.0] * 6)
    with SummaryWriter(str(folder / EVENTS)) as writer:
        for row in rows:
            if row.stage > last.stage:
                before += last.episodes
            for name in Row._fields[2:]:
                writer.add_scalar(f"learning/{name}", getattr(row, name), before + row.episodes)
            last = row
