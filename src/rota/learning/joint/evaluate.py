"""Compare a joint agent with rules, an untrained network, random choices and the oracle, on equal cases."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rota.config.bind import facts
from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.core.intervals import mean_interval
from rota.core.population.events import Reported
from rota.core.processes import WorkerPool, map_over
from rota.core.text import aligned
from rota.learning.files import EVALUATION, EvaluationFile, read_evaluation, write_evaluation
from rota.learning.joint.baselines import Reached, Rule, all_rules, cluster_labels, oracle, random_policy
from rota.learning.joint.baselines import play as play_policy
from rota.learning.joint.cases import JointCase
from rota.learning.joint.rollout import generator_for
from rota.policies.agents import read_facts
from rota.policies.allocation.joint import KIND, form_of, read_weights
from rota.policies.joint.network import new_weights
from rota.simulator.population import engine_for

RULE = "best_rule"
"""Name, in what is said about an agent, of the rule that was best on its training cases."""
AGAIN = "evaluate again: rota evaluate --agent DIR --recordings PATH…"
TRAINING = 1_000_003
"""Seed of the cases on which a rule is chosen."""
KEPT, LAST = 5, 15
"""Number of combinations of allocation and stopping that are tried with all rules of growth, and at last."""


class ComparedJointCase(NamedTuple):
    """All methods on one case: the accuracy of the best trial at the deadline."""

    number: int
    cluster: int
    """Cases with a model and data set in common are in one."""
    pairs: str
    trials: int
    slots: int
    deadline_s: float
    agent: float
    best_rule: float
    untrained: float
    random: float
    oracle: float
    agent_test: float
    """Test accuracy of the trial that the agent has as the best."""
    rule_test: float
    agent_time: float
    """Time at which the agent first had the rule's accuracy ÷ the deadline; 1 if it never did."""
    rule_time: float
    """The same of the rule itself."""
    growths: int
    """Number of changes that the agent made."""
    decisions: int
    seconds: float
    """CPU time of the agent's run."""


@dataclass(frozen=True)
class JointComparison:
    """A joint agent compared with the rule that was best on its training cases, and others."""

    agent: str
    rule: str
    rows: tuple[ComparedJointCase, ...]

    def mean(self, name: str) -> float:
        """Return the mean of a column over cases."""
        return float(np.mean([getattr(row, name) for row in self.rows]))

    def to_json(self) -> dict[str, Any]:
        """Return plain values, without the single cases."""
        means = {name: self.mean(name) for name in ("agent", "best_rule", "untrained", "random", "oracle")}
        gained, room = means["agent"] - means["best_rule"], means["oracle"] - means["best_rule"]
        low, high, clusters = clustered(self.rows)
        known = math.isfinite(low)
        return {
            "cases": len(self.rows),
            **means,
            "best_rule_name": self.rule,
            "difference": gained,
            "low": low if known else None,
            "high": high if known else None,
            "captured": gained / room if room else 0.0,
            "time_to_rule_ratio": self.mean("agent_time"),
            "rule_time_ratio": self.mean("rule_time"),
            "agent_test": self.mean("agent_test"),
            "rule_test": self.mean("rule_test"),
            "growths": self.mean("growths"),
            "clusters": clusters,
            "decisions_per_s": round(self.mean("decisions") / max(self.mean("seconds"), 1e-9), 1),
        }


def clustered(rows: Sequence[ComparedJointCase], other: str = "best_rule") -> tuple[float, float, int]:
    """Return the 95 % interval of agent − another over means of clusters, and their number.

    Of a single cluster, its cases are what varies; of a single case, the ends are NaN.
    """
    found: dict[int, list[float]] = {}
    for row in rows:
        found.setdefault(row.cluster, []).append(row.agent - getattr(row, other))
    means = [float(np.mean(group)) for group in found.values()]
    _, low, high = mean_interval(means if len(means) > 1 else next(iter(found.values())))
    return low, high, len(means)


def run_agent(case: JointCase, flat: Floats, hidden: int) -> tuple[Reached, int, int]:
    """Return what an agent reaches on a case, and its numbers of decisions and of changes."""
    landscape = case.landscape()
    engine = engine_for(case.scene, landscape)
    engine.write(reviews=False)
    engine.use(form_of(flat, hidden))
    engine.advance()
    reports = tuple((e.at_s, e.trial, e.metric) for e in engine.timeline if isinstance(e, Reported))
    tests = tuple(landscape.test_accuracy(trial) for trial in range(len(case.places)))
    numbers = engine.numbers
    return Reached(reports, tests), numbers["asked"].item(), numbers["growths"].item()


@cache
def _warm_up(folders: tuple[Path, ...], hidden: int) -> None:
    """Run an agent once in this process, so that loading of compiled code is not measured."""
    run_agent(generator_for(folders).case(0, 0), new_weights(hidden, 0).flat, hidden)


@cache
def rules_by_name() -> dict[str, Rule]:
    """Return every combination of rules by its name."""
    return {str(rule): rule for rule in all_rules()}


class CaseTask(NamedTuple):
    """A case on which an agent and a rule are compared."""

    folders: tuple[Path, ...]
    number: int
    seed: int
    agent: Path
    rule: str


def compared(task: CaseTask) -> ComparedJointCase:
    """Run all methods on a case."""
    weights = read_weights(task.agent)
    case, hidden = generator_for(task.folders).case(task.number, task.seed), len(weights.b)
    _warm_up(task.folders, hidden)
    began = time.process_time()
    agent, decisions, growths = run_agent(case, weights.flat, hidden)
    seconds = time.process_time() - began
    rule = play_policy(case, rules_by_name()[task.rule].policy())
    untrained, _, _ = run_agent(case, new_weights(hidden, task.seed).flat, hidden)
    return ComparedJointCase(
        number=task.number,
        cluster=0,
        pairs=" ".join("-".join(pair) for pair in case.pairs),
        trials=len(case.places),
        slots=case.cluster.slots,
        deadline_s=case.deadline_s,
        agent=agent.accuracy,
        best_rule=rule.accuracy,
        untrained=untrained.accuracy,
        random=play_policy(case, random_policy(), task.number).accuracy,
        oracle=oracle(case),
        agent_test=agent.test_accuracy,
        rule_test=rule.test_accuracy,
        agent_time=min(1.0, agent.time_to(rule.accuracy) / case.deadline_s),
        rule_time=min(1.0, rule.time_to(rule.accuracy) / case.deadline_s),
        growths=growths,
        decisions=decisions,
        seconds=seconds,
    )


def evaluate(
    agent: Path,
    paths: Sequence[Path],
    count: int,
    seed: int,
    pool: WorkerPool,
    on_case: Callable[[int], object] = lambda count: None,
) -> JointComparison:
    """Compare an agent with others on so many cases of a seed, from the growth trees in these folders."""
    read_weights(agent)
    rule = str(read_facts(agent, KIND).about.get(RULE, ""))
    if rule not in rules_by_name():
        raise InputError(f"{agent}: its best rule, {rule!r}, is not known; learn it again with this rota")
    folders = tuple(Path(path) for path in paths)
    labels = cluster_labels(generator_for(folders).draw(count, seed))  # errors come from here, not a worker
    tasks = [(CaseTask(folders, number, seed, agent, rule),) for number in range(count)]
    rows: dict[int, ComparedJointCase] = {}
    for place, row in pool.each(compared, tasks):
        rows[place] = row._replace(cluster=labels[place])
        on_case(1)
    return JointComparison(str(agent), rule, tuple(row for _, row in sorted(rows.items())))


class RuleTask(NamedTuple):
    """A case on which rules are tried."""

    folders: tuple[Path, ...]
    number: int
    seed: int
    rules: tuple[str, ...]


def tried(task: RuleTask) -> list[float]:
    """Return the accuracy of each rule on a case."""
    case = generator_for(task.folders).case(task.number, task.seed)
    return [play_policy(case, rules_by_name()[name].policy()).accuracy for name in task.rules]


def choose_rule(
    folders: tuple[Path, ...],
    count: int,
    pool: WorkerPool,
    on_case: Callable[[int], object] = lambda count: None,
) -> tuple[str, dict[str, float]]:
    """Return the rule that is best on cases of these trees, and the accuracies of the best few.

    Allocations and who stops are chosen on a third of the cases, where no network grows; the best of
    them with all rules of growth on the next third, and the best of those on the last two thirds.
    """
    each = -(-count // 3)

    def means(rules: Sequence[str], first: int) -> dict[str, float]:
        tasks = [RuleTask(folders, number, TRAINING, tuple(rules)) for number in range(first, first + each)]
        found = map_over(pool, tried, tasks)
        on_case(each)
        return dict(zip(rules, np.mean(found, axis=0).tolist(), strict=True))

    def best(found: dict[str, float], most: int) -> list[str]:
        return sorted(found, key=lambda name: -found[name])[:most]

    rules = rules_by_name()
    known = [name for name, rule in rules.items() if rule.growth.name == "never"]
    kept = {(rules[name].allocation, rules[name].stopping) for name in best(means(known, 0), KEPT)}
    grown = means([n for n, rule in rules.items() if (rule.allocation, rule.stopping) in kept], each)
    last = means(best(grown, LAST), 2 * each)
    both = {name: (grown[name] + last[name]) / 2 for name in last}
    return best(both, 1)[0], dict(sorted(both.items(), key=lambda row: -row[1]))


def write_comparison(folder: Path, found: JointComparison, command: str) -> None:
    """Write a comparison to a folder, or replace the one that is there."""
    content = found.to_json() | {"of": found.agent, "compared": [row._asdict() for row in found.rows]}
    write_evaluation(folder, EvaluationFile(KIND, command, content))


def read_joint_comparison(folder: Path) -> tuple[JointComparison, str]:
    """Read a comparison, and the command that wrote it."""
    found = read_evaluation(folder, KIND, AGAIN)
    said = facts(_Said, found.content, folder / EVALUATION, AGAIN, others=True)
    return JointComparison(said.of, said.best_rule_name, said.compared), found.command


@dataclass(frozen=True, slots=True)
class _Said:
    of: str
    best_rule_name: str
    compared: tuple[ComparedJointCase, ...]


def text(found: JointComparison) -> str:
    """Return a table of the methods, and the difference between agent and rule in words."""
    said = found.to_json()
    named = {"agent": "joint agent", "best_rule": found.rule, "untrained": "untrained network"}
    lines = [["accuracy at the deadline", "mean"]]
    lines += [
        [named.get(name, name), f"{100 * said[name]:.2f} %"]
        for name in ("agent", "best_rule", "untrained", "random", "oracle")
    ]
    times = (
        f"it has the rule's accuracy after {said['time_to_rule_ratio']:.0%} of the time, the rule itself "
        f"after {said['rule_time_ratio']:.0%}"
    )
    return "\n".join([*aligned(lines), f"{found.agent}: {in_words(found)}", times])


def in_words(found: JointComparison) -> str:
    """Return the difference between agent and rule: `+0.10 points against the rule (…), 8 % of …`."""
    said = found.to_json()
    low, high, clusters = said["low"], said["high"], said["clusters"]
    points = f"{100 * said['difference']:+.2f} points against the rule"
    captured = f"{said['captured']:.0%} of what the oracle gains"
    if low is None:
        return f"{points}, {captured}, on one case, from which no difference can be told"
    sure = "no difference" if low <= 0.0 <= high else "a difference"
    over = (
        "the interval is over cases, all of them related"
        if clusters == 1
        else f"the interval is around the mean of {clusters} independent groups of them"
    )
    return (
        f"{points} ({100 * low:+.2f} to {100 * high:+.2f}: {sure}), {captured}; points are the mean over "
        f"{said['cases']} cases, {over}"
    )
