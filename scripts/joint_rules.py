"""Compare combinations of rules for placement and growth on cases that none of them was tuned on.

    python scripts/joint_rules.py [--cases 50] [--tuning 60] [--agent DIR] [--out FILE]

For each fold of `results/recordings/growth/folds.toml` the rules are ranked on cases from the trees of the
other folds; then all of them, random choices and the oracle are simulated on cases from the trees of the
fold. The cases are written down first, next to the results.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rota.core.files import write_file
from rota.learning.joint import baselines, cases
from rota.learning.joint.baselines import Part, Rule
from rota.recordings.library import read_growth_trees

GROWTH = Path("results/recordings/growth")
SEED, TUNING_SEED = 1, 1000
"""Seeds of the cases that are tested on, and of those that rules are ranked on."""
WITH_AGENT = [Rule(Part(name), Part("agent")) for name in ("finish",)] + [
    Rule(Part("promote", (("reduction_factor", 2.0),)), Part("agent"))
]


def folds(quick: bool) -> dict[str, tuple[list[Path], list[Path]]]:
    """Return fold → folders of the trees to test on, and of those to tune on."""
    names = tomllib.loads((GROWTH / "folds.toml").read_text("utf-8"))["folds"]
    every = [name for fold in names.values() for name in fold]
    found = {
        fold: ([GROWTH / name for name in own], [GROWTH / name for name in every if name not in own])
        for fold, own in names.items()
    }
    return dict(list(found.items())[:1]) if quick else found


def scores(found: Sequence[cases.JointCase], rule: Rule, agent: Path | None) -> list[baselines.Reached]:
    """Return what a rule reaches on each case."""
    policy = rule.policy(agent)
    return [baselines.play(case, policy) for case in found]


def fold_results(
    drawn: list[cases.JointCase], others: list[Path], options: argparse.Namespace, rules: list[Rule]
) -> dict[str, Any]:
    """Return accuracies on the cases of a fold by rule, in the order of the ranking."""
    tuning = cases.CaseGenerator(read_growth_trees(others)).draw(options.tuning, TUNING_SEED)
    ranked = baselines.tune(tuning, rules, options.agent)
    reached = {str(rule): scores(drawn, rule, options.agent) for rule, _ in ranked.table}
    random = [baselines.play(case, baselines.random_policy(), case.number) for case in drawn]
    return {
        "rule": str(ranked.rule),
        "tuning": {str(rule): accuracy for rule, accuracy in ranked.table},
        "accuracy": {name: [each.accuracy for each in found] for name, found in reached.items()},
        "best_three": {name: [each.best_three for each in found] for name, found in reached.items()},
        "test_accuracy": {name: [each.test_accuracy for each in found] for name, found in reached.items()},
        "random": [each.accuracy for each in random],
        "oracle": [baselines.oracle(case) for case in drawn],
    }


def summed_up(drawn: list[cases.JointCase], found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return means over all cases, and paired differences to the rule that was best in tuning."""
    names = list(found[0]["accuracy"])

    def over(measure: str, name: str | None = None) -> np.ndarray:
        return np.concatenate([each[measure][name or each["rule"]] for each in found])

    tuned = over("accuracy")
    oracle, random = (np.concatenate([each[name] for each in found]) for name in ("oracle", "random"))
    rows = {name: (over("accuracy", name), over("test_accuracy", name)) for name in names}
    rows = dict(sorted(rows.items(), key=lambda row: -row[1][0].mean()))
    return {
        "cases": len(drawn),
        "rules": {each["fold"]: each["rule"] for each in found},
        "best_rule": float(tuned.mean()),
        "best_rule_three": float(over("best_three").mean()),
        "best_rule_test": float(over("test_accuracy").mean()),
        "random": float(random.mean()),
        "oracle": float(oracle.mean()),
        "oracle_minus_rule": baselines.paired(drawn, oracle - tuned)._asdict(),
        "random_minus_rule": baselines.paired(drawn, random - tuned)._asdict(),
        "table": {
            name: {
                "accuracy": float(accuracy.mean()),
                "test": float(test.mean()),
                "minus_rule": baselines.paired(drawn, accuracy - tuned)._asdict(),
            }
            for name, (accuracy, test) in rows.items()
        },
    }


def main() -> None:
    """Compare, and write results and cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=50, help="cases of each fold")
    parser.add_argument("--tuning", type=int, default=40, help="cases on which rules are ranked")
    parser.add_argument("--agent", type=Path, help="an adaptation agent, as one more growth policy")
    parser.add_argument("--out", type=Path, default=Path("results/measured/joint-rules.json"))
    parser.add_argument("--quick", action="store_true", help="one fold, few cases and few rules")
    options = parser.parse_args()
    rules = baselines.all_rules() + (WITH_AGENT if options.agent else [])
    if options.quick:
        options.cases, options.tuning, rules = 4, 4, rules[::60]
    parts = folds(options.quick)
    drawn = {
        fold: cases.CaseGenerator(read_growth_trees(test)).draw(options.cases, SEED)
        for fold, (test, _) in parts.items()
    }
    every = [(fold, case) for fold, found in drawn.items() for case in found]
    lines = [",".join(("fold", *cases.COLUMNS))]
    lines += [",".join(map(str, (fold, *case.row()))) for fold, case in every]
    write_file(options.out.with_suffix(".cases.csv"), "\n".join(lines) + "\n")
    found: list[dict[str, Any]] = []
    for fold, (_, others) in parts.items():
        results = fold_results(drawn[fold], others, options, rules)
        found.append({"fold": fold, **results})
        print(f"fold {fold}: {results['rule']}", file=sys.stderr, flush=True)
    result = summed_up([case for _, case in every], found)
    table = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in result.pop("table").items())
    head = json.dumps(result, indent=1).removesuffix("\n}")
    write_file(options.out, f'{head},\n "table": {{\n{table}\n}}\n}}\n')
    print(
        f"{result['cases']} cases: rule {result['best_rule']:.4f}, random {result['random']:.4f}, "
        f"oracle {result['oracle']:.4f}"
    )


if __name__ == "__main__":
    main()
