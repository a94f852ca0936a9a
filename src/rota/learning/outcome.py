"""What was evaluated, and the file of it: light to read, as figures and tables need no more."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rota.core.atomic import written
from rota.core.errors import InputError

FILE = "evaluation.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a policy does in one scenario, and what it comes to."""

    scenario: str
    model: str
    seed: int
    """Of the recording."""
    sequence: tuple[int, ...]
    changes: tuple[str, ...]
    """The sequence in words."""
    actions: tuple[str, ...]
    """All that could be done, in words."""
    accuracy: float
    rank: int
    """Among all sequences; 1 is the best."""
    of: int
    headroom: float
    """0 is the mean of all sequences, 1 the best of them."""
    probabilities: tuple[tuple[float, ...], ...]
    """Of each action, at each decision of the sequence."""
    data: str = ""
    """That the model learned; empty in files that do not say."""


def share(accuracy: float, mean: float, best: float) -> float:
    """Of the way from the mean to the best; 0 if there is none but what rounding makes of it."""
    return 0.0 if math.isclose(mean, best, rel_tol=1e-9) else (accuracy - mean) / (best - mean)


@dataclass(frozen=True, slots=True)
class Others:
    """What an agent is compared with in one scenario: accuracies."""

    never: float
    random: float
    """The mean of ten sequences that were drawn."""
    fixed: float | None
    """The sequence that is best on average where the agent has learned; None if there is none for it."""
    fixed_sequence: tuple[int, ...] | None
    oracle: float
    mean: float
    """Of all sequences."""


class Row(NamedTuple):
    """One scenario."""

    agent: Outcome
    others: Others
    seen: bool
    """Whether the agent has learned from it."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self.agent) | {"seen": self.seen, "others": asdict(self.others)}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Row":
        """Raises KeyError, TypeError or AttributeError if that is not one."""
        values = dict(found)
        others, seen = Others(**_tuples(values.pop("others"))), bool(values.pop("seen"))
        return cls(Outcome(**_tuples(values)), others, seen)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One agent, everywhere it was evaluated."""

    agent: str
    """Its folder."""
    about: dict[str, Any]
    """What its file says of how it was learned."""
    rows: tuple[Row, ...]


def write_evaluations(folder: Path, evaluations: Sequence[Evaluation], command: str) -> None:
    """Write what was evaluated, or replace what is there."""
    found = [
        {"agent": each.agent, "about": each.about, "scenarios": [row.to_json() for row in each.rows]}
        for each in evaluations
    ]
    text = json.dumps({"command": command, "agents": found}, indent=1, allow_nan=False)
    with written(folder / FILE) as stream:
        stream.write((text + "\n").encode())


def read_evaluations(folder: Path) -> tuple[list[Evaluation], str]:
    """What was written, and the command that did."""
    path = folder / FILE
    try:
        found = json.loads(path.read_text("utf-8"))
        evaluations = [
            Evaluation(each["agent"], each["about"], tuple(map(Row.from_json, each["scenarios"])))
            for each in found["agents"]
        ]
        return evaluations, str(found["command"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: cannot be read ({error!r}); evaluate again: rota evaluate") from None


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """Lists, which is what JSON has, as tuples."""
    return {name: _tuple(value) for name, value in values.items()}


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
