#!/usr/bin/env python3
"""Learns joint agents in the folds of the growth trees, and compares each with others on the trees left out.

    python scripts/joint_folds.py [--seeds N] [--cases N] [--trees 0,100,50,25] [--measured FILE]

Every network is left out once (results/recordings/growth/folds.toml): agents learn from the other folds, the
rule is chosen there too, and both are compared on cases of the left-out trees. Accuracies of a case are
averaged over seeds; intervals are over networks and data sets (those that a case mixes are one). What is done
stays in FOLDER: the same command goes on from there.
"""

import argparse
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np

from rota.core.text import aligned
from rota.figures.joint import joint_figure
from rota.figures.page import write_figure
from rota.learning.files import EVALUATION
from rota.learning.joint.cases import CaseGenerator, JointCase
from rota.learning.joint.evaluate import JointComparison, clustered, read_joint_comparison
from rota.learning.joint.noise import known_from_seeds
from rota.recordings.library import read_growth_trees

ROOT = Path(__file__).resolve().parents[1]
GROWTH = ROOT / "results/recordings/growth"
CASE_SEED = 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cases", type=int, default=60, help="of each fold")
    parser.add_argument("--trees", default="0", help="numbers of trees to learn from; 0 for all")
    parser.add_argument("--set", action="append", default=[], help="passed on to rota learn")
    parser.add_argument("--out", type=Path, default=ROOT / "results/joint-folds")
    parser.add_argument("--measured", type=Path, help="file of the table")
    parser.add_argument("--figure", type=Path, help="file of a figure of the last table")
    args = parser.parse_args()
    folds = tomllib.loads((GROWTH / "folds.toml").read_text("utf-8"))["folds"]
    lines = []
    for trees in map(int, args.trees.split(",")):
        found = {fold: of_fold(args, fold, pairs, trees) for fold, pairs in folds.items()}
        if lines:
            lines.append("")
        lines += table(found, f"{trees} trees" if trees else "all trees", args.seeds)
    if args.figure is not None:
        together = JointComparison(
            "", "that of each fold", tuple(r for each in found.values() for r in each.rows)
        )
        write_figure(
            joint_figure(together, ["figure: python scripts/joint_folds.py --figure FILE"]), args.figure
        )
    known = [known_from_seeds(case) for pairs in folds.values() for case in cases_of(args, pairs)]
    lines.append(
        f"knowing the mean of the other seeds of every path, and no curve: {100 * float(np.mean(known)):.2f}"
    )
    print("\n".join(lines))
    if args.measured is not None:
        args.measured.write_text("\n".join(lines) + "\n", "utf-8")
    return 0


def of_fold(args: argparse.Namespace, fold: str, pairs: list[str], trees: int) -> JointComparison:
    """Learn agents without a fold, and compare them on it; rows are means over seeds."""
    compared = []
    for seed in range(args.seeds):
        agent = args.out / f"{fold}-{trees}-seed{seed}"
        if not (agent / "agent.json").exists():
            leave_out = "[" + ", ".join(f'"{pair}"' for pair in pairs) + "]"
            rota("learn", ROOT / "config/learn/joint-growth.toml", "--set", f"joint.leave_out={leave_out}",
                 "--set", f"joint.trees={trees}", "--seed", seed, "--out", agent,
                 *(word for each in args.set for word in ("--set", each)))  # fmt: skip
        if not (agent / "compared" / EVALUATION).exists():
            rota("evaluate", "--agent", agent, "--recordings", *(GROWTH / pair for pair in pairs), "--cases",
                 args.cases, "--seed", CASE_SEED, "--out", agent / "compared")  # fmt: skip
        compared.append(read_joint_comparison(agent / "compared")[0])
    rows = []
    for same in zip(*(each.rows for each in compared), strict=True):
        numbers = {name: float(np.mean([getattr(row, name) for row in same])) for name in MEANS}
        rows.append(same[0]._replace(cluster=same[0].cluster + 100 * ord(fold), **numbers))
    return replace(compared[0], rows=tuple(rows))


def cases_of(args: argparse.Namespace, pairs: list[str]) -> list[JointCase]:
    """Return the cases on which agents are compared that were learned without these trees."""
    return CaseGenerator(read_growth_trees([GROWTH / pair for pair in pairs])).draw(args.cases, CASE_SEED)


MEANS = (
    *("agent", "best_rule", "untrained", "random", "oracle"),
    *("agent_test", "rule_test", "agent_time", "rule_time", "growths"),
)


def rota(*words: object) -> None:
    """Run a command of rota."""
    command = [sys.executable, "-P", "-m", "rota", *map(str, words), "--quiet"]
    subprocess.run(command, check=True, stdout=sys.stderr)


COLUMNS = ("agent", "best_rule", "untrained", "random", "oracle")
HEAD = (
    "left out",
    "cases",
    "agent",
    "rule",
    "untrained",
    "random",
    "oracle",
    "agent - rule",
    "95 % interval",
)


def table(found: dict[str, JointComparison], title: str, seeds: int) -> list[str]:
    """Return the lines of a table: a line for each fold, and one for all."""
    everything = JointComparison("", "", tuple(row for each in found.values() for row in each.rows))
    lines = [[*HEAD, "of oracle's", "time", "rule's"]]
    for name, each in [*found.items(), ("all", everything)]:
        said = each.to_json()
        means = [f"{100 * said[key]:.2f}" for key in COLUMNS]
        low, high = (100 * end for end in clustered(each.rows)[:2])
        more = f"{100 * said['difference']:+.2f}", f"{low:+.2f} to {high:+.2f}", f"{said['captured']:+.0%}"
        times = f"{said['time_to_rule_ratio']:.2f}", f"{said['rule_time_ratio']:.2f}"
        lines.append([name, str(said["cases"]), *means, *more, *times])
    test = f"agent {100 * everything.mean('agent_test'):.2f}, rule {100 * everything.mean('rule_test'):.2f}"
    untrained = 100 * (everything.mean("agent") - everything.mean("untrained"))
    low, high = (100 * each for each in clustered(everything.rows, "untrained")[:2])
    return [
        f"{title}, {seeds} seed(s): accuracy of the best trial at the deadline in %, differences in points",
        *aligned(lines),
        f"its test accuracy: {test}; changes by the agent: {everything.mean('growths'):.2f} a case",
        f"agent - untrained network: {untrained:+.2f} ({low:+.2f} to {high:+.2f})",
        f"the interval of all is over {everything.to_json()['clusters']} independent networks and data sets",
        *(f"rule without fold {name}: {each.rule}" for name, each in found.items()),
    ]


if __name__ == "__main__":
    sys.exit(main())
