"""Evaluations of agents: values, their file, and their table."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rota.config.bind import facts, keys
from rota.core.errors import InputError
from rota.core.files import atomic_write
from rota.learning.files import EVALUATION, read_json
from rota.recordings.library import models

AGAIN = "evaluate again: rota evaluate"


@dataclass(frozen=True, slots=True)
class EvaluationOutcome:
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
class Baselines:
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


class EvaluationRow(NamedTuple):
    """One scenario."""

    agent: EvaluationOutcome
    others: Baselines
    seen: bool
    """Whether the agent has learned from it."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self.agent) | {"seen": self.seen, "others": asdict(self.others)}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One agent, everywhere it was evaluated."""

    agent: str
    """Its folder."""
    about: dict[str, Any]
    """What its file says of how it was learned."""
    rows: tuple[EvaluationRow, ...]


def write_evaluations(folder: Path, evaluations: Sequence[Evaluation], command: str) -> None:
    """Write what was evaluated, or replace what is there."""
    found = [
        {"agent": each.agent, "about": each.about, "scenarios": [row.to_json() for row in each.rows]}
        for each in evaluations
    ]
    text = json.dumps({"command": command, "agents": found}, indent=1, allow_nan=False)
    with atomic_write(folder / EVALUATION) as stream:
        stream.write((text + "\n").encode())


def read_evaluations(folder: Path) -> tuple[list[Evaluation], str]:
    """What was written, and the command that did."""
    path = folder / EVALUATION
    found = facts(_File, read_json(path, AGAIN), path, AGAIN)
    for each in found.agents:
        facts(_OutcomeAbout, each.about, path, AGAIN, others=True)
    evaluations = [
        Evaluation(each.agent, dict(each.about), tuple(_row(row) for row in each.scenarios))
        for each in found.agents
    ]
    return evaluations, found.command


def _row(found: "_Scenario") -> EvaluationRow:
    agent = EvaluationOutcome(**{name: getattr(found, name) for name in keys(EvaluationOutcome)})
    return EvaluationRow(agent, found.others, found.seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scenario(EvaluationOutcome):
    """What the file says of a scenario."""

    seen: bool
    others: Baselines

    def __post_init__(self) -> None:
        rows = {len(row) for row in self.probabilities}
        if len(self.probabilities) != len(self.sequence) or rows - {len(self.actions)}:
            raise InputError("probabilities: expected one of each action, at each decision of the sequence")


@dataclass(frozen=True, slots=True)
class _Agent:
    """What the file says of an agent."""

    agent: str
    about: dict[str, object]
    scenarios: tuple[_Scenario, ...]


@dataclass(frozen=True, slots=True)
class _OutcomeAbout:
    """What it says of how the agent was learned, as far as somebody reads it."""

    seed: int = 0


@dataclass(frozen=True, slots=True)
class _File:
    """What the file says."""

    command: str
    agents: tuple[_Agent, ...]


def table(rows: Sequence[EvaluationRow]) -> str:
    """A line per scenario: the agent, and what others would have reached; the unseen are marked."""
    called = models([row.agent for row in rows])
    width = max([10, *map(len, called)])
    lines = [_head(width)]
    for model, (found, others, seen) in zip(called, rows, strict=True):
        seed = f" ({found.seed})" if found.seed else ""
        where = f"{model:<{width}} {found.scenario + seed + ('' if seen else ' *'):<15}"
        reached = f"{found.rank:>5}/{found.of:<3} {found.headroom:>9.2f} {found.accuracy:>9.2%}"
        lines.append(f"{where} {reached} {_others(others)}  {', '.join(found.changes)}")
    mean = sum(row.agent.headroom for row in rows) / len(rows)
    legend = "" if all(row.seen for row in rows) else "  * unseen"
    lines.append(f"{'mean':<{width + 16}} {'':>9} {mean:>9.2f}{legend}")
    return "\n".join(lines)


def brief(rows: Sequence[EvaluationRow]) -> str:
    """`  convnet2/early rank 3/64, convnet2/late rank 12/64; headroom 0.71`."""
    called = models([row.agent for row in rows])
    ranks = ", ".join(
        f"{model}/{row.agent.scenario} rank {row.agent.rank}/{row.agent.of}"
        for model, row in zip(called, rows, strict=True)
    )
    return f"  {ranks}; headroom {sum(row.agent.headroom for row in rows) / len(rows):.2f}"


def _head(width: int) -> str:
    return (
        f"{'model':<{width}} {'scenario':<15} {'rank':>9} {'headroom':>9} {'accuracy':>9} "
        f"{'never':>7} {'random':>7} {'fixed':>7} {'oracle':>7}  sequence"
    )


def _others(others: Baselines) -> str:
    fixed = "–" if others.fixed is None else f"{others.fixed:.2%}"
    return f"{others.never:>7.2%} {others.random:>7.2%} {fixed:>7} {others.oracle:>7.2%}"
