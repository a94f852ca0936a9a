"""`rota train`: train one network, changing it on the way if asked to."""

import argparse
import math
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands.common import command_line, given_file, say
from rota.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.training.clock import Epoch
    from rota.training.config import TrainConfig
    from rota.training.decisions import Decision
    from rota.training.run import TrainingRun

OUT = Path("results/train")


def add_parser(subparsers: Any) -> None:
    """Add `train`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "train",
        help="train one network, changing it on the way if asked to",
        description="Train what the configuration asks for. Stop it at any moment; the same command goes on "
        "from the last checkpoint.",
    )
    add = parser.add_argument
    add("config", type=given_file, nargs="?", metavar="CONFIG", help="a TOML file, as in config/train")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="set any key of the configuration")
    add("--out", type=Path, metavar="FOLDER", help=f"where the run is kept ({OUT}/NAME)")
    add(
        "--agent",
        metavar="DIR",
        help="an agent that rota learn wrote, or a class of yours, as file.py:Class; it decides on changes",
    )
    add("--again", action="store_true", help="delete what is in that folder and train anew")
    add("--download", action="store_true", help="fetch the data set over the network if it is not there")
    add("--help-config", action="store_true", help="list the keys of the configuration")


def run(args: argparse.Namespace) -> int:
    """Train; prints a line per epoch and change, and how well the network does in the end."""
    from rota.training.config import TrainConfig

    if args.help_config:
        from rota.config.describe import help_text
        from rota.training.models.registry import MODELS

        say(help_text(TrainConfig))
        say("\nsetup.model is one of")
        for name, entry in MODELS.items():
            say(f"{name:14} {entry.note}")
        return 0
    if args.config is None:
        raise ConfigError("which configuration? Give a file, for example config/train/digits.toml")
    points = _points(args)
    whole = args.out or OUT / args.config.stem
    deciding = [_deciding(args.agent or config.agent, config) for _, config in points]
    asked = zip(points, deciding, strict=True)
    return max(_train(name, config, whole / name, args, who) for (name, config), who in asked)


def _train(
    name: str, config: "TrainConfig", folder: Path, args: argparse.Namespace, deciding: dict[str, Any]
) -> int:
    if args.download and config.setup.data:
        from rota.training.data import load

        load(config.setup.data, download=True)

    from rota.training.run import TrainingRun

    training = TrainingRun(config, folder, command_line(args, "config", "--set", "--agent"), **deciding)
    if args.again and folder.exists():
        _clear(folder)
    if name:
        _say(name)
    if training.result.exists():
        say(f"note: {folder} is trained already; --again trains it anew", file=sys.stderr)
    _tell(training)
    return _report(training)


def _deciding(agent: str | None, config: "TrainConfig") -> dict[str, Any]:
    """Return what decides on changes: the agent in a folder or a class from outside, if one is given."""
    from rota.core.registry import is_outside

    if agent is not None and is_outside(agent):
        from rota.config.bind import own_growth

        found = own_growth(agent, config.options)
        return {"adaptation": found.policy, "decided_by": found.identity}
    if config.options:
        raise ConfigError('options: are for a class of yours, as agent = "file.py:Class"; leave them out')
    if agent is None:
        return {}
    from rota.learning.agent import read_agent, weights_sha256

    return {"adaptation": read_agent(Path(agent)), "decided_by": f"agent {weights_sha256(Path(agent))}"}


def _tell(training: "TrainingRun") -> None:
    """Train; says each epoch when it is over, after what was changed before it."""
    said = 0
    with _bar(training.config) as on_step:
        for epoch in training.epochs(on_step):
            for line in _changes(training, epoch.steps)[said:]:
                _say(line)
                said += 1
            _say(_line(epoch))
    for line in _changes(training, math.inf)[said:]:
        _say(line)


def _changes(training: "TrainingRun", until: float) -> list[str]:
    """Return a line for each decision, and each other change, before so many steps."""
    lines = [(each.steps, _decision(each)) for each in training.decisions]
    decided = {(each.steps, each.chosen) for each in training.decisions}
    others = [made for made in training.changes if (made.steps, str(made.change)) not in decided]
    lines = [*((made.steps, str(made.change)) for made in others), *lines]
    ordered = sorted(lines, key=lambda line: line[0])
    return [f"           step {steps:6}  {text}" for steps, text in ordered if steps < until]


def _decision(decision: "Decision") -> str:
    """Return a decision as `deepen 1 (p 0.83)  deepen 0 0.05, nothing 0.12`."""
    rest = {name: p for name, p in decision.probabilities.items() if name != decision.chosen}
    others = ", ".join(f"{name} {p:.2f}" for name, p in rest.items())
    why = f"  (cannot be done: {', '.join(decision.refused)})" if decision.refused else ""
    return f"{decision.chosen} (p {decision.probabilities[decision.chosen]:.2f})  {others}{why}"


def _points(args: argparse.Namespace) -> list[tuple[str, "TrainConfig"]]:
    """Return name and configuration of each point of the grid; without a grid, of one without a name."""
    from rota.config.bind import bind
    from rota.config.grid import expand
    from rota.config.load import override, placed, read
    from rota.training.config import TrainConfig

    table = placed(read(args.config), ("profile", "agent"), args.config.parent, names=("agent",))
    points = expand(override(table, args.set), args.config)
    return [(point.name, bind(TrainConfig, point.table, args.config)) for point in points]


def _clear(folder: Path) -> None:
    """Delete a run, and nothing that is not one."""
    if not (folder / "train.toml").exists():
        raise ConfigError(f"--again: {folder} is not the folder of a training run; choose another with --out")
    shutil.rmtree(folder)


@contextmanager
def _bar(config: "TrainConfig") -> Iterator["Callable[[], None]"]:
    from rota.library.processes import progress_bar

    with progress_bar(config.budget_steps, "step", dynamic_ncols=True) as bar:
        yield lambda: bar.update() and None


def _say(line: str) -> None:
    from tqdm import tqdm

    with tqdm.external_write_mode(file=sys.stdout):
        say(line, flush=True)


def _line(epoch: "Epoch") -> str:
    metrics = "  ".join(f"validation {name} {value:.4f}" for name, value in epoch.metrics.items())
    why = "" if epoch.ended == "whole" else f"  ({epoch.failure or epoch.ended})"
    return (
        f"epoch {epoch.number:3}  {epoch.at_s:8.1f} s  step {epoch.steps:6}  lr {epoch.lr:.2g}  "
        f"training loss {epoch.loss:.4f}  {metrics}{why}"
    )


def _report(training: "TrainingRun") -> int:
    from rota.training.run import read_result

    result = read_result(training.result)
    for split in ("validation", "test"):
        values = ((name, math.nan if value is None else value) for name, value in result[split].items())
        say(f"{split}: ", "  ".join(f"{name} {value:.4f}" for name, value in values))
    say(training.folder)
    return 1 if result["failure"] else 0
