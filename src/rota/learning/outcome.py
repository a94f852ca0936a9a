"""Evaluations of agents: values, their file, and their table."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rota.config.bind import facts, keys
from rota.core.errors import InputError
from rota.learning.files import EVALUATION, EvaluationFile, read_evaluation, write_evaluation
from rota.recordings.library import models

KIND = "adaptation"
AGAIN = "evaluate again: rota evaluate"


@dataclass(frozen=True, slots=True)
class EvaluationOutcome:
    """What a policy does in one scenario, and the accuracy that it reaches."""

    scenario: str
    model: str
    seed: int
    """Seed of the recording."""
    sequence: tuple[int, ...]
    changes: tuple[str, ...]
    """The sequence in words."""
    actions: tuple[str, ...]
    """All possible actions, in words."""
    accuracy: float
    rank: int
    """Rank among all sequences; 1 is the best."""
    of: int
    headroom: float
    """0 for the mean of all sequences, 1 for the best."""
    probabilities: tuple[tuple[float, ...], ...]
    """Probability of each action at each decision of the sequence."""
    data: str = ""
    """Data set of the model; empty in files that do not say."""


def share(accuracy: float, mean: float, best: float) -> float:
    """Return (accuracy − mean) / (best − mean); 0 if mean and best differ by rounding only."""
    return 0.0 if math.isclose(mean, best, rel_tol=1e-9) else (accuracy - mean) / (best - mean)


@dataclass(frozen=True, slots=True)
class Baselines:
    """Accuracies that an agent is compared with in one scenario."""

    never: float
    random: float
    """Mean accuracy of ten random sequences."""
    fixed: float | None
    """Accuracy of the sequence that is best on average where the agent has learned; None if there is none."""
    fixed_sequence: tuple[int, ...] | None
    oracle: float
    mean: float
    """Mean accuracy of all sequences."""


class EvaluationRow(NamedTuple):
    """One agent in one scenario, with baselines."""

    agent: EvaluationOutcome
    others: Baselines
    seen: bool
    """Whether the agent has learned from this scenario."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self.agent) | {"seen": self.seen, "others": asdict(self.others)}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The evaluation of one agent in all its scenarios."""

    agent: str
    """Folder of the agent."""
    about: dict[str, Any]
    """How it was learned, as its file says."""
    rows: tuple[EvaluationRow, ...]


def write_evaluations(folder: Path, evaluations: Sequence[Evaluation], command: str) -> None:
    """Write evaluations to a folder, or replace those that are there."""
    found = [
        {"agent": each.agent, "about": each.about, "scenarios": [row.to_json() for row in each.rows]}
        for each in evaluations
    ]
    write_evaluation(folder, EvaluationFile(KIND, command, {"agents": found}))


def read_evaluations(folder: Path) -> tuple[list[Evaluation], str]:
    """Read evaluations, and the command that wrote them."""
    path = folder / EVALUATION
    read = read_evaluation(folder, KIND, AGAIN)
    found = facts(_File, read.content, path, AGAIN, others=True)
    for each in found.agents:
        facts(_OutcomeAbout, each.about, path, AGAIN, others=True)
    evaluations = [
        Evaluation(each.agent, dict(each.about), tuple(_row(row) for row in each.scenarios))
        for each in found.agents
    ]
    return evaluations, read.command


def _row(found: "_Scenario") -> EvaluationRow:
    agent = EvaluationOutcome(**{name: getattr(found, name) for name in keys(EvaluationOutcome)})
    return EvaluationRow(agent, found.others, found.seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scenario(EvaluationOutcome):
    seen: bool
    others: Baselines

    def __post_init__(self) -> None:
        rows = {len(row) for row in self.probabilities}
        if len(self.probabilities) != len(self.sequence) or rows - {len(self.actions)}:
            raise InputError("probabilities: expected one of each action, at each decision of the sequence")


@dataclass(frozen=True, slots=True)
class _Agent:
    agent: str
    about: dict[str, object]
    scenarios: tuple[_Scenario, ...]


@dataclass(frozen=True, slots=True)
class _OutcomeAbout:
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _File:
    agents: tuple[_Agent, ...]


def table(rows: Sequence[EvaluationRow]) -> str:
    """Return a table with a line per scenario: the agent and the baselines; unseen scenarios are marked."""
    called = models([row.agent for row in rows])
    width = max([10, *map(len, called)])
    lines = [_head(width)]
    for model, (found, others, seen) in zip(called, rows, strict=True):
        seed = f" ({found.seed})" if found.seed else ""
        where = f"{model:<{width}} {found.scenario + seed + ('' if seen else ' *'):<15}"
        reached = f"{found.rank:>5}/{found.of:<3} {found.headroom:>9.2f} {found.accuracy:>9.2%}"
        lines.append(f"{where} {reached} {_others(others)}  {', '.join(found.changes)}")
    mean = totals(rows)["headroom"]
    legend = "" if all(row.seen for row in rows) else "  * unseen"
    lines.append(f"{'mean':<{width + 16}} {'':>9} {mean:>9.2f}{legend}")
    return "\n".join(lines)


def totals(rows: Sequence[EvaluationRow]) -> dict[str, Any]:
    """Return plain values about all rows: how many, the mean headroom, and how often the best was found."""
    return {
        "scenarios": len(rows),
        "headroom": sum(row.agent.headroom for row in rows) / len(rows),
        "best_found": sum(row.agent.rank == 1 for row in rows),
    }


def brief(rows: Sequence[EvaluationRow]) -> str:
    """Return one line: `  convnet2/early rank 3/64, convnet2/late rank 12/64; headroom 0.71`."""
    called = models([row.agent for row in rows])
    ranks = ", ".join(
        f"{model}/{row.agent.scenario} rank {row.agent.rank}/{row.agent.of}"
        for model, row in zip(called, rows, strict=True)
    )
    return f"  {ranks}; headroom {totals(rows)['headroom']:.2f}"


def _head(width: int) -> str:
    return (
        f"{'model':<{width}} {'scenario':<15} {'rank':>9} {'headroom':>9} {'accuracy':>9} "
        f"{'never':>7} {'random':>7} {'fixed':>7} {'oracle':>7}  sequence"
    )


def _others(others: Baselines) -> str:
    fixed = "–" if others.fixed is None else f"{others.fixed:.2%}"
    return f"{others.never:>7.2%} {others.random:>7.2%} {fixed:>7} {others.oracle:>7.2%}"
