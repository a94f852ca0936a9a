"""`rota evaluate`: let agents decide in recorded scenarios, or on random clusters, and compare them."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands.common import command_line, refuse, say
from rota.commands.learn import add_learning, configured, learn_all
from rota.core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from rota.learning.agent import Agent
    from rota.learning.outcome import Evaluation, EvaluationRow
    from rota.learning.problem import Problem
    from rota.learning.runs import Fold

OUT = Path("results/evaluate")
LEARNING = "is for learning; leave it out with --agent"
WHICH = "what rota learn wrote: an agent, or a folder of several; or a class of yours, as file.py:Class"
LEFT_OUT = ("scenario", "model", "tree")


def add_parser(subparsers: Any) -> None:
    """Add `evaluate`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "evaluate",
        help="how good learned agents are, on scenarios and models that they know and others",
        description="Let agents decide in recorded scenarios, and compare them with others. With "
        "--leave-out, agents are learned first, each from all recordings but some, and evaluated on those.",
    )
    add = parser.add_argument
    add("--agent", type=Path, metavar="DIR", help=WHICH)
    add(
        "--leave-out", choices=LEFT_OUT, help="leave out each scenario, model, or scenario of a model in turn"
    )
    add("--all", action="store_true", help="also print every sequence of each tree, with its rank")
    add(
        "--cases", type=int, default=200, metavar="N",
        help="of an agent that places trials and lets them grow: number of cases, drawn by --seed (200)",
    )  # fmt: skip
    add("--figures", type=Path, metavar="DIR", help="also draw figures into this folder")
    add_learning(parser, f"where agents and evaluation.json go ({OUT}/NAME); else not written")


def run(args: argparse.Namespace) -> int:
    """Evaluate; prints a table per agent, or one of all that was left out."""
    if (args.agent is None) == (args.leave_out is None):
        raise ConfigError("what? Give --agent DIR, the folder that rota learn wrote, or --leave-out scenario")
    if args.leave_out:
        return _left_out(args)
    from rota.policies.agents import kind_of

    kind = kind_of(args.agent)
    if kind is None:
        _refuse_several(args.agent)
    return EVALUATE.get(kind or "", _agent)(args)


def _refuse_several(folder: Path) -> None:
    """Raise InputError if all agents below a folder are of kinds that are evaluated one by one."""
    from rota.policies.agents import FACTS, KINDS, kind_of

    found = [path.parent for path in sorted(folder.rglob(FACTS))] if folder.is_dir() else []
    kinds = {kind_of(each) for each in found}
    if found and kinds <= KINDS.keys() - {"adaptation"}:
        raise InputError(f"{folder}: has agents below it, evaluated one by one; give one: --agent {found[0]}")


SAID = ("config", "--agent", "--leave-out", "--recordings+", "--seed", "--set")
"""Arguments that figures and results quote."""


def _agent(args: argparse.Namespace) -> int:
    from rota.config.bind import own_growth
    from rota.core.registry import is_outside
    from rota.learning.evaluate import all_sequences, ranking, rows
    from rota.learning.outcome import Evaluation, table, write_evaluations
    from rota.learning.problem import problem_of, read_trees

    if not args.recordings:
        raise ConfigError("where? Give --recordings PATH…: trees, or folders of them")
    own = is_outside(str(args.agent))
    settings = {"CONFIG": args.config, "--set": [] if own else args.set, "--seed": args.seed}
    refuse(settings | {"--workers": args.workers, "--again": args.again}, LEARNING)
    agents = {} if own else _agents(args.agent)
    policy = own_growth(str(args.agent), _options(args.set)) if own else None
    problems = [problem_of(tree) for tree in read_trees(args.recordings)]
    fitting = [_fitting(agent, problems, folder) for folder, agent in agents.items()]
    found = [
        Evaluation(str(folder), dict(agent.about), tuple(_rows(agent, here)))
        for (folder, agent), here in zip(agents.items(), fitting, strict=True)
    ]
    if policy is not None:
        found = [Evaluation(policy.name, {}, tuple(rows(policy.policy, problems, frozenset())))]
        fitting = [problems]
    pairs = [list(zip(each.rows, here, strict=True)) for each, here in zip(found, fitting, strict=True)]
    _keep(found, args, write_evaluations, "draw_evaluations")
    if args.json:
        scenarios = [
            row.to_json()
            | {"agent": each.agent}
            | ({"sequences": [one._asdict() for one in all_sequences(row, problem)]} if args.all else {})
            for each, here in zip(found, pairs, strict=True)
            for row, problem in here
        ]
        say(json.dumps({"scenarios": scenarios}))
        return 0
    for each, here in zip(found, pairs, strict=True):
        say(f"{each.agent}\n{table(each.rows)}", end="\n\n")
        for row, problem in here if args.all else ():
            say(ranking(row, problem), end="\n\n")
    return 0


def _options(assignments: Sequence[str]) -> Any:
    """Return what `--set options.NAME.KEY=VALUE` says; raises ConfigError if other keys are set."""
    from rota.config.load import override

    table = override({}, assignments)
    for name in table:
        if name != "options":
            raise ConfigError(f"--set {name}: is for learning; of a class, set options.NAME.KEY")
    return table.get("options", {})


def _placement(args: argparse.Namespace) -> int:
    """Compare an agent that places trials with the rules; prints a table, or one JSON object."""
    from rota.commands.learn_placement import tried, workers_of
    from rota.learning.placement.outcome import table, write_comparison
    from rota.learning.placement.run import config_of
    from rota.policies.allocation.learned import read_weights

    refuse({"--recordings": args.recordings}, f"{args.agent} places trials, which needs none; leave it out")
    refuse({"CONFIG": args.config, "--set": args.set, "--seed": args.seed, "--again": args.again}, LEARNING)
    with workers_of(args) as pool:
        found = tried(read_weights(args.agent), config_of(args.agent), pool, args)
    _keep(found, args, write_comparison, "draw_comparison")
    if args.json:
        say(json.dumps({"agent": str(args.agent), "evaluation": found.to_json()}))
    else:
        say(f"{args.agent}\n{table(found)}")
    return 0


def _joint(args: argparse.Namespace) -> int:
    from rota.commands.learn_joint import evaluate_joint

    return evaluate_joint(args)


EVALUATE: dict[str, Callable[[argparse.Namespace], int]] = {
    "adaptation": _agent,
    "placement": _placement,
    "joint": _joint,
}
"""Kind of an agent → function that evaluates it."""


def _agents(folder: Path) -> dict[Path, "Agent"]:
    from rota.learning.agent import KIND, read_agent
    from rota.learning.files import agents_below, is_agent

    if is_agent(folder) or not folder.is_dir():
        return {folder: read_agent(folder)}
    found = {each: read_agent(each) for each in agents_below(folder, KIND)}
    if not found:
        raise InputError(f"{folder}: no agent in it; learn one first: rota learn --recordings PATH --pooled")
    return found


def _left_out(args: argparse.Namespace) -> int:
    from rota.learning.evaluate import summary
    from rota.learning.outcome import write_evaluations
    from rota.learning.problem import read_trees
    from rota.learning.runs import folds

    out = args.out or OUT / f"without-{args.leave_out}"
    points = configured(args)
    if len(points) > 1:
        raise ConfigError(f"{args.config}: has a grid; give a configuration without one to --leave-out")
    config = points[0][1]
    trees = read_trees(config.recordings)
    found = folds(config, trees, args.leave_out, out)
    learn_all([run for fold in found for run in fold.runs], out, args, over=True)
    trees = [tree for fold in found for tree in fold.left_out]
    evaluations = [each for fold in found for each in _evaluated(fold)]
    args.out = out
    _keep(evaluations, args, write_evaluations, "draw_evaluations")
    result = summary(evaluations, trees)
    say(json.dumps(result.to_json()) if args.json else result.text())
    return 0


def _evaluated(fold: "Fold") -> "list[Evaluation]":
    """Return how good the agents of a fold are where they have not learned."""
    from rota.learning.agent import read_agent
    from rota.learning.outcome import Evaluation
    from rota.learning.problem import problem_of

    problems = [problem_of(tree) for tree in fold.left_out]
    found = []
    for run in fold.runs:
        agent = read_agent(run.folder)
        found.append(Evaluation(str(run.folder), dict(agent.about), tuple(_rows(agent, problems))))
    return found


def _fitting(agent: "Agent", problems: "Sequence[Problem]", folder: Path) -> "list[Problem]":
    """Return the problems that an agent can decide in; raises an error if there are none."""
    found = [problem for problem in problems if agent.decides_between(len(problem.tree.actions))]
    known = agent.options.get("actions")
    if not found:
        raise InputError(f"{folder}: decides between {known} actions; give --recordings with as many")
    for problem in problems:
        if problem not in found:
            count = len(problem.tree.actions)
            say(
                f"note: {problem.label} has {count} actions, {folder} knows {known}; left out",
                file=sys.stderr,
            )
    return found


def _rows(agent: "Agent", problems: "Sequence[Problem]") -> "list[EvaluationRow]":
    from rota.learning.evaluate import rows

    return rows(agent, problems, agent.learned_from, agent.fixed)


def _keep(found: Any, args: argparse.Namespace, write: Callable[..., object], draw: str) -> None:
    """Write what was found, and draw it by a function of `figures.files`, as far as that is asked for."""
    if args.out is not None:
        write(args.out, found, command_line(args, *SAID))
    if args.figures is not None:
        drawing = getattr(import_module("rota.figures.files"), draw)
        for file in drawing(found, args.figures, command_line(args, *SAID)):
            say(f"note: drawn into {file}", file=sys.stderr)
