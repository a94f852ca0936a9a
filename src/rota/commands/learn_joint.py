"""`rota learn` of a file with a `[joint]` table: learn to place trials and to let them grow, in one agent."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands.common import command_line, refuse, say
from rota.commands.learn import JOINT, OUT, bar, command_of
from rota.commands.learn_placement import workers_of

if TYPE_CHECKING:
    from rota.core.processes import WorkerPool
    from rota.learning.files import JointHistoryRow
    from rota.learning.joint.config import JointAgentConfig
    from rota.learning.joint.run import JointRun


def run_joint(args: argparse.Namespace) -> int:
    """Learn an agent for each seed, and choose the rule that is best on training cases."""
    from rota.core.files import folder_lock
    from rota.learning.joint.run import JointRun

    refuse({"--pooled": args.pooled, "--live": args.live}, f"{args.config} has one agent; leave it out")
    out, seeds = args.out or OUT / args.config.stem, args.seed or [None]
    runs = [JointRun(out if len(seeds) == 1 else out / f"seed{seed}", _config(args, seed)) for seed in seeds]
    rules: dict[tuple[Path, ...], tuple[str, dict[str, float]]] = {}
    for run in runs:
        with folder_lock(run.folder):
            if not args.again:
                run.refuse_another()
            if run.done and not args.again:
                say(f"note: {run.folder} is learned already; --again learns it anew", file=sys.stderr)
            else:
                with workers_of(args) as pool:
                    _learn(run, pool, args, rules)
    _print(runs, args)
    return 0


def _config(args: argparse.Namespace, seed: int | None) -> "JointAgentConfig":
    from rota.config.bind import bind
    from rota.config.load import override, read
    from rota.learning.joint.config import JointFile

    table: dict[str, Any] = read(args.config)
    joint = table.get(JOINT)
    paths = joint.get("recordings") if isinstance(joint, dict) else None
    if isinstance(paths, list):
        table[JOINT]["recordings"] = [str(args.config.parent / str(path)) for path in paths]
    flags = [] if seed is None else [f"{JOINT}.seed={seed}"]
    if args.recordings:
        paths = json.dumps([str(path) for path in args.recordings], ensure_ascii=False)
        flags.append(f"{JOINT}.recordings={paths}")
    return bind(JointFile, override(table, [*args.set, *flags]), args.config).joint


def _learn(
    run: "JointRun",
    pool: "WorkerPool",
    args: argparse.Namespace,
    rules: dict[tuple[Path, ...], tuple[str, dict[str, float]]],
) -> None:
    """Learn an agent; the rule of these trees is looked up in `rules`, or chosen and put there."""
    from rota.learning.joint.evaluate import choose_rule
    from rota.learning.joint.run import finish, learn

    learner = run.begin(again=args.again)
    with bar(run.config.updates, " updates", args, initial=len(learner.rows)) as shown:

        def tell(row: "JointHistoryRow") -> None:
            shown.set_postfix(accuracy=f"{row.accuracy:.4f}", refresh=False)
            shown.update()

        learn(learner, pool, tell)
    if run.folders not in rules:
        with bar(run.config.rule_cases, " cases", args) as shown:
            rules[run.folders] = choose_rule(run.folders, run.config.rule_cases, pool, shown.update)
    rule, accuracies = rules[run.folders]
    finish(run, learner, rule, {"rules_in_training": accuracies}, command_of(args))


def _print(runs: "list[JointRun]", args: argparse.Namespace) -> None:
    from rota.learning.joint.evaluate import RULE
    from rota.policies.agents import read_facts

    found: list[dict[str, Any]] = []
    for run in runs:
        about = read_facts(run.folder).about
        spent = {name: about[name] for name in ("trees", "updates", "decisions", "seconds")}
        rate = round(float(str(about["decisions"])) / max(float(str(about["seconds"])), 1e-9), 1)
        facts = {"agent": str(run.folder), **spent, "decisions_per_s": rate, "best_rule_name": about[RULE]}
        found.append(facts)
    if args.json:
        say(json.dumps(found[0] if len(found) == 1 else {"agents": found}))
        return
    for each in found:
        say(
            f"{each['agent']}: {each['updates']:,} updates, {each['decisions']:,} decisions on "
            f"{each['trees']} trees in {each['seconds']:.1f} s, {each['decisions_per_s']:,.0f} a second; the "
            f"best rule in training is {each['best_rule_name']}"
        )


def evaluate_joint(args: argparse.Namespace) -> int:
    """Compare a joint agent with rules, random and the oracle on cases of given trees."""
    from rota.core.errors import ConfigError
    from rota.learning.joint.evaluate import evaluate, text, write_comparison
    from rota.learning.joint.run import known_networks

    if not args.recordings:
        raise ConfigError(
            "on what? Give --recordings PATH…: growth trees that it has not learned from, or folders of them"
        )
    refuse({"CONFIG": args.config, "--set": args.set, "--again": args.again}, "is for learning; leave it out")
    if args.cases < 1:
        raise ConfigError(f"--cases {args.cases}: give 1 or more")
    if args.seed and len(args.seed) > 1:
        raise ConfigError("--seed: draws the cases; give one")
    paths: list[Path] = list(args.recordings)
    if known := known_networks(args.agent, paths):
        names = json.dumps(known, ensure_ascii=False)
        say(
            f"note: {args.agent} has learned from trees of {', '.join(known)}; leave them out when "
            f"you learn: --set 'joint.leave_out={names}'",
            file=sys.stderr,
        )
    with workers_of(args) as pool, bar(args.cases, " cases", args) as shown:
        found = evaluate(args.agent, paths, args.cases, (args.seed or [1])[0], pool, shown.update)
    command = command_line(args, "--agent", "--recordings+", "--cases", "--seed")
    if args.out is not None:
        write_comparison(args.out, found, command)
    if args.figures is not None:
        from rota.figures.files import draw_joint

        for file in draw_joint(found, args.figures, command):
            say(f"note: drawn into {file}", file=sys.stderr)
    say(json.dumps(found.to_json()) if args.json else text(found))
    return 0
