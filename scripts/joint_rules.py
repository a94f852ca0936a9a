"""Compare combinations of rules for placement and growth on cases that none of them was tuned on.

    python scripts/joint_rules.py [--cases 50] [--tuning 40] [--agent DIR] [--fold a] [--out DIR]

For each fold of `results/recordings/growth/folds.toml` the rules are ranked on cases from the trees of the
other folds; then all of them, random choices and the oracle are simulated on cases from the trees of the
fold. Cases are written down first. A fold that is in DIR is not simulated again; the table is of all there.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rota.core.files import write_file
from rota.core.text import aligned
from rota.learning.joint import baselines, cases
from rota.learning.joint.baselines import Part, Rule
from rota.recordings.library import read_growth_trees

GROWTH = Path("results/recordings/growth")
SEED, TUNING_SEED = 1, 1000
"""Seeds of the cases that are tested on, and of those that rules are ranked on."""
WITH_AGENT = [
    Rule(Part("finish"), Part("agent")),
    Rule(Part("promote", (("reduction_factor", 2.0),)), Part("agent")),
]


def folds() -> dict[str, tuple[list[Path], list[Path]]]:
    """Return fold → folders of the trees to test on, and of those to tune on."""
    names = tomllib.loads((GROWTH / "folds.toml").read_text("utf-8"))["folds"]
    every = [name for fold in names.values() for name in fold]
    return {
        fold: ([GROWTH / name for name in own], [GROWTH / name for name in every if name not in own])
        for fold, own in names.items()
    }


def drawn(options: argparse.Namespace) -> dict[str, list[cases.JointCase]]:
    """Return the cases of each fold that are tested on, and write them down."""
    found = {
        fold: cases.CaseGenerator(read_growth_trees(test)).draw(options.cases, SEED)
        for fold, (test, _) in folds().items()
    }
    lines = [",".join(("fold", *cases.COLUMNS))]
    lines += [",".join(map(str, (fold, *case.row()))) for fold, here in found.items() for case in here]
    write_file(options.out / "cases.csv", "\n".join(lines) + "\n")
    return found


def simulate(
    test: list[cases.JointCase], others: list[Path], options: argparse.Namespace, rules: list[Rule]
) -> dict[str, Any]:
    """Return what all rules reach on the cases that they are ranked on, and on those of a fold."""
    tuning = cases.CaseGenerator(read_growth_trees(others)).draw(options.tuning, TUNING_SEED)
    ranked = baselines.tune(tuning, rules, options.agent)
    reached = {}
    for rule, _ in ranked.table:
        policy = rule.policy(options.agent)
        reached[str(rule)] = [baselines.play(case, policy) for case in test]
    random = [baselines.play(case, baselines.random_policy(), case.number) for case in test]
    return {
        "tuning": {str(rule): accuracy for rule, accuracy in ranked.table},
        "parts": {str(rule): [part.name for part in rule] for rule, _ in ranked.table},
        "accuracy": {name: [each.accuracy for each in found] for name, found in reached.items()},
        "best_three": {name: [each.best_three for each in found] for name, found in reached.items()},
        "test_accuracy": {name: [each.test_accuracy for each in found] for name, found in reached.items()},
        "random": [each.accuracy for each in random],
        "random_test": [each.test_accuracy for each in random],
        "oracle": [baselines.oracle(case) for case in test],
    }


def chosen(found: dict[str, Any], among: Callable[[list[str]], bool]) -> str:
    """Return the rule of a fold that was best in tuning, of those with such parts."""
    return next(name for name in found["tuning"] if among(found["parts"][name]))


def table(test: list[cases.JointCase], found: list[dict[str, Any]]) -> str:
    """Return means over all cases, and paired differences to the rule that was best in tuning."""

    def over(key: str, names: list[str]) -> np.ndarray:
        return np.concatenate([each[key][name] for each, name in zip(found, names, strict=True)])

    best = [chosen(each, lambda parts: True) for each in found]
    tuned = over("accuracy", best)
    rows = [("", "accuracy", "best three", "test", "− tuned rule", "95 % interval")]

    def add(name: str, accuracy: np.ndarray, three: str, test_accuracy: str) -> None:
        mean, low, high, _ = baselines.paired(test, accuracy - tuned)
        rows.append(
            (
                name,
                f"{accuracy.mean():.2%}",
                three,
                test_accuracy,
                f"{mean:+.2%}",
                f"{low:+.2%} to {high:+.2%}",
            )
        )

    def add_rule(name: str, names: list[str]) -> None:
        three, tests = over("best_three", names).mean(), over("test_accuracy", names).mean()
        add(name, over("accuracy", names), f"{three:.2%}", f"{tests:.2%}")

    add("oracle", np.concatenate([each["oracle"] for each in found]), "", "")
    add_rule("tuned rule", best)
    parts = [list(dict.fromkeys(parts[at] for parts in found[0]["parts"].values())) for at in range(3)]
    for at, what in enumerate(("allocation", "growth", "stopping")):
        for name in sorted(parts[at]):
            names = [chosen(each, lambda found, name=name, at=at: found[at] == name) for each in found]
            add_rule(f"… {what} {name}", names)
    random_test = np.concatenate([each["random_test"] for each in found]).mean()
    add("random", np.concatenate([each["random"] for each in found]), "", f"{random_test:.2%}")
    clusters = baselines.paired(test, tuned).clusters
    heads = [f"{len(test)} cases in {clusters} clusters; tuned rules: " + "; ".join(dict.fromkeys(best))]
    return "\n".join([*aligned(rows, left=1), *heads]) + "\n"


def main() -> None:
    """Compare, and write results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=50, help="cases of each fold")
    parser.add_argument("--tuning", type=int, default=40, help="cases on which rules are ranked")
    parser.add_argument("--agent", type=Path, help="an adaptation agent, as one more growth policy")
    parser.add_argument("--fold", help="simulate only this fold")
    parser.add_argument("--out", type=Path, default=Path("results/joint-rules"))
    parser.add_argument("--quick", action="store_true", help="few cases and few rules")
    options = parser.parse_args()
    rules = baselines.all_rules() + (WITH_AGENT if options.agent else [])
    if options.quick:
        options.cases, options.tuning, rules = 4, 4, rules[::30]
    test = drawn(options)
    for fold, (_, others) in folds().items():
        file = options.out / f"fold-{fold}.json"
        if not file.exists() and options.fold in (None, fold):
            write_file(file, json.dumps(simulate(test[fold], others, options, rules)) + "\n")
            print(f"fold {fold} is done", file=sys.stderr, flush=True)
    there = [fold for fold in test if (options.out / f"fold-{fold}.json").exists()]
    found = [json.loads((options.out / f"fold-{fold}.json").read_text("utf-8")) for fold in there]
    print(table([case for fold in there for case in test[fold]], found), end="")


if __name__ == "__main__":
    main()
