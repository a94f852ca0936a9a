"""Files of agents that need no torch: the kind of an agent, and the history of its updates."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar, get_type_hints

from rota.core.files import atomic_write, parsed
from rota.core.table import read_table
from rota.policies.allocation.learned import FORMAT as PLACEMENT_FORMAT

FACTS, WEIGHTS = "agent.json", "weights.npz"
HISTORY, EVENTS = "updates.csv", "tensorboard"
EVALUATION = "evaluation.json"


def has_format(path: Path, name: str) -> bool:
    """Whether a JSON file can be read and says that its format is `name`."""
    try:
        found = parsed(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("format") == name


def is_agent(folder: Path) -> bool:
    """Whether a folder has the facts of an agent of any kind; they are written last."""
    return (folder / FACTS).is_file()


def is_placement_agent(folder: Path) -> bool:
    """Whether a folder has an agent, complete or damaged, that places trials."""
    return has_format(folder / FACTS, PLACEMENT_FORMAT)


def placement_agents(folder: Path) -> list[Path]:
    """Return the folders of all agents that place trials, in a folder and below it."""
    found = (path.parent for path in sorted(folder.rglob(FACTS)))
    return [each for each in found if is_placement_agent(each)]


class HistoryRow(NamedTuple):
    """Consecutive updates of an agent that changes networks: means over their episodes."""

    stage: int
    """Number of the stage, from 0."""
    episodes: int
    """Episodes of all scenarios from the start of the stage to the end of these updates."""
    objective: float
    """The loss: −log p × advantage."""
    reward: float
    accuracy: float
    entropy: float
    """Entropy of the sequences of a scenario in nats; 0 if the agent is certain."""
    lr: float
    temperature: float


class PlacementHistoryRow(NamedTuple):
    """One update of an agent that places trials."""

    update: int
    seconds: float
    """Seconds since learning began."""
    decisions: int
    ratio: float
    """Time ÷ lower bound: the mean over cases of the episode without drawn decisions."""
    entropy: float
    lr: float


AnyRow = HistoryRow | PlacementHistoryRow
Row = TypeVar("Row", HistoryRow, PlacementHistoryRow)


def write_history(folder: Path, rows: Sequence[AnyRow], kind: type[AnyRow] = HistoryRow) -> None:
    """Write a history, whose rows are of a kind, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(kind._fields)
    writer.writerows(rows)
    with atomic_write(folder / HISTORY) as stream:
        stream.write(text.getvalue().encode())


def read_history(folder: Path, kind: type[Row]) -> list[Row]:
    """Read a history whose rows are of a kind."""
    table = read_table(folder / HISTORY, list(kind._fields))
    columns = [
        (table.wholes(name).astype(int) if of is int else table.floats(name)).tolist()
        for name, of in get_type_hints(kind).items()
    ]
    return [kind(*row) for row in zip(*columns, strict=True)]


def write_events(folder: Path, rows: Iterable[AnyRow]) -> None:
    """Add a history to the TensorBoard events of a folder; stages follow each other."""
    from tensorboardX import SummaryWriter

    before, stage, at = 0, 0, 0
    with SummaryWriter(str(folder / EVENTS)) as writer:
        for row in rows:
            if isinstance(row, HistoryRow):
                before += at if row.stage > stage else 0
                tag, stage, at = "learning", row.stage, row.episodes
            else:
                tag, at = "placement", row.update
            for name, value in zip(row._fields[2:], row[2:], strict=True):
                writer.add_scalar(f"{tag}/{name}", value, before + at)
