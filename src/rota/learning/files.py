"""Files of learning that need no torch: histories of updates, and evaluations."""

import csv
import io
import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

from rota.core.errors import InputError
from rota.core.files import parsed, write_file
from rota.core.table import read_table
from rota.policies.agents import FACTS, KINDS, kind_of

HISTORY, EVENTS = "updates.csv", "tensorboard"
EVALUATION = "evaluation.json"


EVALUATION_FORMAT, EVALUATION_VERSION = "rota evaluation", 2
PLACEMENT_1 = "rota placement evaluation"
"""Format that evaluations of placement agents said in version 1; those of adaptation agents said none."""


class EvaluationFile(NamedTuple):
    """An evaluation of agents of one kind, as its file says it."""

    kind: str
    command: str
    """Command that evaluated them."""
    content: dict[str, Any]


def write_evaluation(folder: Path, found: EvaluationFile) -> None:
    """Write an evaluation to a folder, or replace the one that is there."""
    said = {
        "format": EVALUATION_FORMAT,
        "version": EVALUATION_VERSION,
        "kind": found.kind,
        "command": found.command,
        **found.content,
    }
    write_file(folder / EVALUATION, json.dumps(said, indent=1, allow_nan=False) + "\n")


def read_evaluation(folder: Path, kind: str, fix: str) -> EvaluationFile:
    """Read an evaluation of agents of a kind; an InputError that ends with `fix` if it cannot be read."""
    path = folder / EVALUATION
    try:
        found = parsed(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); {fix}") from None
    there = _kind_of_evaluation(found)
    if there != kind:
        what = f"an evaluation of kind {there!r}" if there else "no evaluation of agents"
        raise InputError(f"{path}: {what}, of kind {kind!r} is needed; {fix}")
    if not isinstance(found.get("command"), str):
        raise InputError(f"{path}: command is missing, or is no text; {fix}")
    return EvaluationFile(kind, found["command"], found)


def kind_of_evaluation(file: Path) -> str | None:
    """Return the kind of the agents that a file evaluates, complete or damaged; None if it is none."""
    try:
        return _kind_of_evaluation(parsed(file.read_text("utf-8")))
    except (OSError, ValueError):
        return None


def _kind_of_evaluation(found: object) -> str | None:
    if not isinstance(found, dict):
        return None
    if found.get("format") == EVALUATION_FORMAT and found.get("version") == EVALUATION_VERSION:
        return str(found.get("kind"))
    if found.get("format") == PLACEMENT_1 and found.get("version") == 1:
        return "placement"
    return "adaptation" if "format" not in found else None


def is_agent(folder: Path) -> bool:
    """Whether a folder has the facts of an agent of any kind; they are written last."""
    return (folder / FACTS).is_file()


def agents_below(folder: Path, kind: str) -> list[Path]:
    """Return the folders of all agents of a kind, in a folder and below it; also of damaged ones."""
    found = (path.parent for path in sorted(folder.rglob(FACTS)))
    return [each for each in found if kind_of(each) not in KINDS.keys() - {kind}]


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

    @property
    def shown(self) -> tuple[str, int, int]:
        """Where TensorBoard shows the row: its group, its stage, and its place in the stage."""
        return "learning", self.stage, self.episodes


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

    @property
    def shown(self) -> tuple[str, int, int]:
        """Where TensorBoard shows the row: its group, its stage, and its place in the stage."""
        return "placement", 0, self.update


class JointHistoryRow(NamedTuple):
    """One update of an agent that places trials and lets them grow."""

    update: int
    seconds: float
    """Seconds since learning began."""
    decisions: int
    accuracy: float
    """Best accuracy at the deadline: the mean over cases and episodes, decisions being drawn."""
    spread: float
    """Standard deviation of that between the episodes of a case, mean over cases."""
    entropy: float
    """Entropy of a decision in nats."""
    lr: float

    @property
    def shown(self) -> tuple[str, int, int]:
        """Where TensorBoard shows the row: its group, its stage, and its place in the stage."""
        return "joint", 0, self.update


class ScheduleHistoryRow(NamedTuple):
    """One update of an agent that schedules jobs."""

    update: int
    seconds: float
    """Seconds since learning began."""
    episodes: int
    objective: float
    """The objective of the update's episodes, relative to the rule on the same worlds; below 0 is better."""
    validation: float
    """The same of the weights that are kept, on the worlds for validation."""
    lr: float

    @property
    def shown(self) -> tuple[str, int, int]:
        """Where TensorBoard shows the row: its group, its stage, and its place in the stage."""
        return "schedule", 0, self.update


AnyRow = HistoryRow | PlacementHistoryRow | JointHistoryRow | ScheduleHistoryRow
Row = TypeVar("Row", HistoryRow, PlacementHistoryRow, JointHistoryRow, ScheduleHistoryRow)


def write_history(folder: Path, rows: Sequence[AnyRow], kind: type[AnyRow] = HistoryRow) -> None:
    """Write a history, whose rows are of a kind, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(kind._fields)
    writer.writerows(rows)
    write_file(folder / HISTORY, text.getvalue())


def read_history(folder: Path, kind: type[Row]) -> list[Row]:
    """Read a history whose rows are of a kind."""
    table = read_table(folder / HISTORY, list(kind._fields))
    columns = [
        (table.wholes(name).astype(int) if of is int else table.floats(name)).tolist()
        for name, of in get_type_hints(kind).items()
    ]
    return [kind(*row) for row in zip(*columns, strict=True)]


def write_course(folder: Path, rows: Sequence[AnyRow], kind: type[AnyRow] = HistoryRow) -> None:
    """Write how an agent learned, as CSV and for TensorBoard, in place of what is there."""
    shutil.rmtree(folder / EVENTS, ignore_errors=True)
    write_history(folder, rows, kind)
    write_events(folder, rows)


def write_events(folder: Path, rows: Iterable[AnyRow]) -> None:
    """Add a history to the TensorBoard events of a folder; stages follow each other."""
    from tensorboardX import SummaryWriter

    before, stage, at = 0, 0, 0
    with SummaryWriter(str(folder / EVENTS)) as writer:
        for row in rows:
            tag, own, here = row.shown
            before += at if own > stage else 0
            stage, at = own, here
            for name, value in zip(row._fields[2:], row[2:], strict=True):
                writer.add_scalar(f"{tag}/{name}", value, before + at)
