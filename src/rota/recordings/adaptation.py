"""Reader of adaptation tables: all sequences of changes, as recorded elsewhere.

Columns are `scenario,action_1,…,left_1_s,…,total_s,accuracy`: the action and the time left at each decision,
the budget, and the final accuracy. The largest action is to do nothing. Such tables time sequences with the
same beginning separately; a tree has one time for each beginning, the mean.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rota.core.arrays import Floats
from rota.core.errors import TraceError
from rota.core.grouped import grouped
from rota.core.table import Table, read_table
from rota.recordings.folder import Provenance
from rota.recordings.tree import MOST_ACTIONS, NOTHING, EpochPoint, Prefix, Tree, beginnings

FIELDS = ("scenario", "action_1", "left_1_s", "total_s", "accuracy")


def read_adaptation(
    path: Path, model: str, data: str, provenance: Provenance, actions: int | None = None
) -> list[Tree]:
    """Return a tree per scenario, in the order of the file; accuracies before the end are NaN.

    The last of `actions` is to do nothing; by default it is the largest in the table.
    """
    table = read_table(path, FIELDS)
    if not len(table):
        raise TraceError(f"{path}: no rows after the header; expected one per scenario and sequence")
    decisions = _decisions(table)
    sequences = _sequences(table, decisions)
    found = max(map(max, sequences)) + 1
    if actions is not None and actions < found:
        raise TraceError(f"{path}: has actions 0 to {found - 1}; give {found} of them or more, not {actions}")
    if (actions or found) > MOST_ACTIONS:
        raise TraceError(f"{path}: has {actions or found:,} actions; expected at most {MOST_ACTIONS:,}")
    names = (*(f"deepen {block}" for block in range((actions or found) - 1)), NOTHING)
    left_s = np.column_stack([_left_s(table, number) for number in range(1, decisions + 1)])
    accuracies = _accuracies(table)
    trees = []
    for scenario, rows in _scenarios(table).items():
        _check_unique(table, sequences, rows)
        budget_s = _budget_s(table, rows)
        curves = _curves([sequences[row] for row in rows], left_s[rows], accuracies[rows], budget_s)
        tree = Tree(
            model=model,
            data=data,
            scenario=scenario,
            seed=0,
            budget_s=budget_s,
            start_s=curves[()][-1].at_s,
            decisions=decisions,
            actions=names,
            curves=curves,
            provenance=provenance,
            details={"source": path.name, "not_measured": ["epoch", "steps", "loss", "seed"]},
        )
        trees.append(tree)
    return trees


def _scenarios(table: Table) -> dict[str, list[int]]:
    """Return scenario (with hyphens) → its rows."""
    return grouped((name.replace("_", "-"), row) for row, name in enumerate(table.texts("scenario")))


def _curves(
    sequences: list[Prefix], left_s: Floats, accuracies: Floats, budget_s: float
) -> Mapping[Prefix, tuple[EpochPoint, ...]]:
    """Return one point at the end of each prefix: the time of the next decision, or the final accuracy."""
    rows = zip(sequences, left_s.tolist(), strict=True)
    left = grouped(
        each for sequence, times_s in rows for each in zip(beginnings(sequence), times_s, strict=False)
    )
    inner = {
        prefix: (EpochPoint(len(prefix), max(0.0, budget_s - mean), 0, math.nan, math.nan),)
        for prefix, times in left.items()
        for mean in [math.fsum(times) / len(times)]  # which rounding may put above each of them
    }
    ends = {
        sequence: (EpochPoint(len(sequence), budget_s, 0, math.nan, accuracy),)
        for sequence, accuracy in zip(sequences, accuracies.tolist(), strict=True)
    }
    return inner | ends


def _decisions(table: Table) -> int:
    """Return the number of decisions per sequence; each needs both of its columns."""
    numbers = [number for number in range(1, len(table.columns)) if f"action_{number}" in table.columns]
    for number, column in enumerate(numbers, 1):
        name = f"left_{number}_s" if number == column else f"action_{number}"
        if name not in table.columns:
            raise TraceError(f"{table.path}: line 1: no column {name!r}, though there is 'action_{column}'")
    return len(numbers)


def _sequences(table: Table, decisions: int) -> list[Prefix]:
    columns = (table.wholes(f"action_{number}").astype(int).tolist() for number in range(1, decisions + 1))
    return list(zip(*columns, strict=True))


def _left_s(table: Table, number: int) -> Floats:
    """Return the time left before a decision, which must not increase."""
    name = f"left_{number}_s"
    before = "total_s" if number == 1 else f"left_{number - 1}_s"
    left_s, before_s = table.numbers(name), table.numbers(before)
    late = np.flatnonzero(left_s > before_s)
    if len(late):
        row = int(late[0])
        raise table.wrong(name, row, f"at most {before}, which is {before_s[row]:g}")
    return left_s


def _accuracies(table: Table) -> Floats:
    accuracies = table.numbers("accuracy")
    table.check("accuracy", accuracies <= 1.0, "a share from 0 to 1")
    return accuracies


def _check_unique(table: Table, sequences: list[Prefix], rows: list[int]) -> None:
    first: dict[Prefix, int] = {}
    for row in rows:
        if sequences[row] in first:
            line = table.lines[first[sequences[row]]]
            raise table.wrong("action_1", row, f"the start of a new sequence: line {line} has the same")
        first[sequences[row]] = row


def _budget_s(table: Table, rows: list[int]) -> float:
    total_s = table.positives("total_s")
    other = [row for row in rows if total_s[row] != total_s[rows[0]]]
    if other:
        raise table.wrong("total_s", other[0], f"{total_s[rows[0]]:g}, the budget of the scenario so far")
    return float(total_s[rows[0]])
