"""The epochs and the decisions of a run as CSV."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

from rota.training.decisions import Decision


def epochs_csv(rows: list[dict[str, Any]]) -> bytes:
    """A row per epoch, its metrics last."""
    metrics = sorted({name for row in rows for name in row["metrics"]})
    plain = ["number", "ended", "steps", "at_s", "lr", "loss"]
    head = ["epoch", *plain[1:], *(f"validation_{name}" for name in metrics), "failure"]
    lines = []
    for row in rows:
        measured = [row["metrics"].get(name, math.nan) for name in metrics]
        lines.append([*(row[name] for name in plain), *measured, row["failure"]])
    return _csv([head, *lines])


def decisions_csv(decisions: Sequence[Decision]) -> bytes:
    """A row per decision, with the probability of each action."""
    actions = list(decisions[0].probabilities) if decisions else []
    head = ["at_s", "left_s", "steps", "chosen", *(f"p {action}" for action in actions), "refused"]
    lines = []
    for each in decisions:
        chances = [each.probabilities[action] for action in actions]
        lines.append([each.at_s, each.left_s, each.steps, each.chosen, *chances, ", ".join(each.refused)])
    return _csv([head, *lines])


def _csv(lines: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode()
