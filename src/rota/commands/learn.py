"""`rota learn`: learn how networks should change, to place trials, both in one, or to schedule jobs."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands.common import command_line, given_file, renamed_flag, say, workers
from rota.core.errors import ConfigError

if TYPE_CHECKING:
    from rota.learning.config import LearnConfig
    from rota.learning.runs import AgentRun
    from rota.recordings.tree import Tree

OUT = Path("results/learn")
PLACEMENT, JOINT, SCHEDULE = "placement", "joint", "schedule"
"""Tables of a configuration: about placing trials, placing them and letting them grow, or scheduling jobs."""
MOST_TABLES = 3
"""Number of agents above which each has a line instead of a table."""


def add_parser(subparsers: Any) -> None:
    """Add `learn`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "learn",
        help="learn how networks should change, to place trials, or both in one; or to schedule jobs",
        description="Learn agents from recorded trees, or, if the configuration has a [placement] table, one "
        "that places trials on unequal slots; with a [joint] table one that does both; with a [schedule] "
        "table some that schedule jobs. Stop it at any moment; the same command goes on from there.",
    )
    pooled = "one agent from all trees (else one per scenario)"
    parser.add_argument("--pooled", action="store_true", default=None, help=pooled)
    parser.add_argument("--joint", action="store_true", default=None, help=argparse.SUPPRESS)
    live = "learn from real training, of what this file asks to record: config/record/quick.toml"
    parser.add_argument("--live", type=given_file, metavar="TOML", help=live)
    parser.add_argument("--help-config", action="store_true", help="list the keys of the configuration")
    add_learning(parser, f"where agents go ({OUT}/NAME)")


def add_learning(parser: argparse.ArgumentParser, out: str) -> None:
    """Add what all commands take that learn."""
    add = parser.add_argument
    add("config", type=given_file, nargs="?", metavar="CONFIG", help="a TOML file, as in config/learn")
    add("--recordings", type=given_file, nargs="+", metavar="PATH", help="trees, or folders of them")
    add("--seed", type=int, action="append", metavar="N", help="of the agent (0); may be repeated")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="set any key of the configuration")
    add("--out", type=Path, metavar="DIR", help=out)
    add(
        "--workers", type=workers, metavar="N",
        help="processes side by side (one per core); to place trials also ray[:ADDRESS], a Ray cluster",
    )  # fmt: skip
    add("--again", action="store_true", help="learn anew what is there")
    add("--json", action="store_true", help="print one JSON object, and nothing else")
    add("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Learn; prints what each agent would do where it has learned."""
    from rota.learning.config import LearnConfig, LiveConfig

    renamed_flag(args, "--joint", "--pooled")
    if args.help_config:
        from rota.config.describe import help_text
        from rota.learning.joint.config import JointFile
        from rota.learning.placement.config import PlacementFile
        from rota.learning.scheduling.training import ScheduleFile

        asked = (LearnConfig, PlacementFile, JointFile, ScheduleFile) if args.live is None else (LiveConfig,)
        say(*map(help_text, asked), sep="\n\n")
        return 0
    import tensorboardX  # noqa: F401 (it is needed when all is learned: who lacks it should know before)

    if _has_table(args.config, PLACEMENT):
        from rota.commands.learn_placement import run_placement

        return run_placement(args)
    if _has_table(args.config, JOINT):
        from rota.commands.learn_joint import run_joint

        return run_joint(args)
    if _has_table(args.config, SCHEDULE):
        from rota.commands.learn_schedule import run_schedule

        return run_schedule(args)
    if args.live is not None:
        from rota.commands.learn_live import run_live

        return run_live(args)
    out = args.out or OUT / (args.config.stem if args.config else "pooled" if args.pooled else "scenarios")
    runs = _runs(args, out)
    learn_all(runs, out, args)
    _print(runs, args)
    return 0


def _has_table(config: Path | None, name: str) -> bool:
    """Return whether a file has a table."""
    from rota.config.load import read

    return config is not None and name in read(config)


@contextmanager
def bar(total: int, unit: str, args: argparse.Namespace, **look: Any) -> Iterator[Any]:
    """Give a progress bar, which is seen on a terminal."""
    from rota.library.processes import progress_bar

    shown = False if args.quiet else None
    with progress_bar(total, unit, shown, leave=True, dynamic_ncols=True, **look) as found:
        yield found


def learn_all(runs: Sequence["AgentRun"], out: Path, args: argparse.Namespace, *, over: bool = False) -> None:
    """Learn what is not there yet, with a bar; says which agents are there when there are several.

    Agents that were learned in another way are an error, unless they may be written over.
    """
    from rota.core.cluster import own_cores
    from rota.learning.runs import learn

    if isinstance(args.workers, str):
        raise ConfigError(
            f"--workers {args.workers}: only agents that place trials learn on Ray; give a number"
        )
    for each in runs:
        if not (args.again or over):
            each.refuse_another()
    again = bool(args.again)
    open_ = {stage.digest: stage for run in runs if again or not run.done for stage in run.last.chain}
    if not open_:
        say(f"note: {out} is learned already; --again learns it anew", file=sys.stderr)
    drawn = sum(stage.drawn for stage in open_.values() if not stage.done)
    with bar(drawn, " episodes", args, unit_scale=True) as shown:
        for each in learn(
            runs, out, args.workers or len(own_cores()), command_of(args), shown.update, again=again
        ):
            if len(runs) > 1 and open_:
                _note(each.folder)


def command_of(args: argparse.Namespace) -> str:
    """Return the command line that says the same, for the provenance."""
    return command_line(
        args, "config", "--recordings+", "--pooled", "--live", "--leave-out", "--seed", "--set"
    )


def _runs(args: argparse.Namespace, out: Path) -> list["AgentRun"]:
    from rota.learning.problem import names, read_trees
    from rota.learning.runs import plan, wanted

    found: list[AgentRun] = []
    known: dict[tuple[Path, ...], list[Tree]] = {}
    for name, config in configured(args):
        if config.recordings not in known:
            known[config.recordings] = read_trees(config.recordings)
        trees = known[config.recordings]
        if args.config or args.pooled or "stages" in _set_keys(args):
            try:
                found += plan(config, trees, out, out / name)
            except ConfigError as error:
                where = ": ".join(str(part) for part in (args.config, name) if part)
                raise ConfigError(f"{where}: {error}" if where else str(error)) from None
            continue
        for scenario in dict.fromkeys(names(wanted(trees, config))):
            alone = replace(config, stages=(scenario,))
            found += plan(alone, trees, out, out / scenario.replace("/", "-"))
    return found


def _set_keys(args: argparse.Namespace) -> set[str]:
    return {text.partition("=")[0].strip() for text in args.set}


def configured(args: argparse.Namespace) -> list[tuple[str, "LearnConfig"]]:
    """Return name and configuration of each point of the grid; without a grid, of one without a name."""
    from rota.config.bind import bind
    from rota.config.grid import expand
    from rota.config.load import override, read
    from rota.learning.config import LearnConfig

    if getattr(args, "pooled", False) and "stages" in _set_keys(args):
        raise ConfigError("--pooled: learns from all at once; leave it out, or the stages")
    if args.config is None and not args.recordings:
        raise ConfigError("from what? Give a configuration, as in config/learn, or --recordings PATH…")
    table = _seen_from_here(read(args.config), args.config.parent) if args.config else {}
    table = override(table, [*args.set, *_flags(args)])
    file = args.config or ""
    return [(point.name, bind(LearnConfig, point.table, file)) for point in expand(table, file)]


def _flags(args: argparse.Namespace) -> list[str]:
    """Return flags as settings, which win over a file and its grid."""
    found = []
    if args.recordings:
        found.append(f"recordings={json.dumps([str(path) for path in args.recordings], ensure_ascii=False)}")
    if getattr(args, "pooled", False):
        found.append('stages=["*"]')
    if args.seed:
        found.append(f"seeds={args.seed}")
    return found


def _seen_from_here(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a table whose paths start at the folder of its file."""
    if isinstance(table.get("recordings"), list):
        table["recordings"] = [str(folder / str(path)) for path in table["recordings"]]
    if isinstance(table.get("start"), str):
        table["start"] = str(folder / table["start"])
    return table


def _print(runs: Sequence["AgentRun"], args: argparse.Namespace) -> None:
    from rota.learning.agent import read_agent
    from rota.learning.evaluate import rows
    from rota.learning.outcome import brief, table
    from rota.learning.problem import problem_of

    scenarios, abouts = [], []
    for each in runs:
        agent = read_agent(each.folder)
        abouts.append(agent.about)
        problems = [problem_of(tree) for tree in each.trees]
        found = rows(agent, problems, agent.learned_from, agent.fixed)
        scenarios += [row.to_json() | {"agent": str(each.folder)} for row in found]
        if not args.json:
            say(f"{each.folder}: {_spent([agent.about])}")
            say(brief(found) if len(runs) > MOST_TABLES else table(found) + "\n")
    if args.json:
        say(json.dumps({"scenarios": scenarios} | _totals(abouts)))


def _totals(abouts: Sequence[Any]) -> dict[str, float]:
    episodes, seconds = sum(a["episodes"] for a in abouts), sum(a["seconds"] for a in abouts)
    rate = round(episodes / seconds, 1) if seconds else 0.0
    return {"episodes": episodes, "seconds": round(seconds, 3), "episodes_per_s": rate}


def _spent(abouts: Sequence[Any]) -> str:
    found = _totals(abouts)
    return (
        f"{found['episodes']:,} episodes in {found['seconds']:.1f} s, {found['episodes_per_s']:,.0f} a second"
    )


def _note(folder: Path) -> None:
    from tqdm import tqdm

    with tqdm.external_write_mode(file=sys.stderr):
        say(f"learned: {folder}", file=sys.stderr)
