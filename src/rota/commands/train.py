"""`rota train`: train one network, changing it on the way if asked to."""

import argparse
import math
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.training.epoch import Epoch
    from rota.training.experiment import TrainConfig
    from rota.training.run import Run

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
    add("config", type=Path, nargs="?", metavar="CONFIG", help="a TOML file, as in config/train")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="set any key of the configuration")
    add("--out", type=Path, metavar="FOLDER", help=f"where the run is kept ({OUT}/NAME)")
    add("--again", action="store_true", help="delete what is in that folder and train anew")
    add("--download", action="store_true", help="fetch the data set over the network if it is not there")
    add("--help-config", action="store_true", help="list the keys of the configuration")


def run(args: argparse.Namespace) -> int:
    """Train; prints a line per epoch and how well the network does in the end."""
    from rota.training.experiment import TrainConfig

    if args.help_config:
        from rota.config.describe import help_text

        print(help_text(TrainConfig))
        return 0
    if args.config is None:
        raise ConfigError("which configuration? Give a file, for example config/train/digits.toml")
    points = _points(args)
    whole = args.out or OUT / args.config.stem
    return max(_train(name, config, whole / name, args) for name, config in points)


def _train(name: str, config: "TrainConfig", folder: Path, args: argparse.Namespace) -> int:
    if args.download and config.setup.data:
        from rota.training.data import load

        load(config.setup.data, download=True)
    if args.again and folder.exists():
        _clear(folder)

    from rota.training.run import Run

    if name:
        _say(name)
    training = Run(config, folder, command_of(args))
    if training.result.exists():
        print(f"note: {folder} is trained already; --again trains it anew", file=sys.stderr)
    told = 0
    with _bar(config) as on_step:
        for epoch in training.epochs(on_step):
            for made in training.changes_until(epoch)[told:]:
                _say(f"           step {made.steps:6}  {made.change}")
                told += 1
            _say(_line(epoch))
    return _report(training)


def command_of(args: argparse.Namespace) -> str:
    """The command line that says the same, for the provenance."""
    words = ["rota", "train", str(args.config)]
    words += [word for text in args.set for word in ("--set", text)]
    return shlex.join(words)


def _points(args: argparse.Namespace) -> list[tuple[str, "TrainConfig"]]:
    """Name and configuration of each point of the grid; of the only one if there is none, without a name."""
    from rota.config.bind import bind
    from rota.config.grid import expand
    from rota.config.load import override, read
    from rota.training.experiment import TrainConfig

    table = read(args.config)
    if isinstance(table.get("profile"), str):  # seen from the file, if the file says so
        table["profile"] = str(args.config.parent / str(table["profile"]))
    points = expand(override(table, args.set), args.config)
    return [(point.name, bind(TrainConfig, point.table, args.config)) for point in points]


def _clear(folder: Path) -> None:
    """Delete a run, and nothing that is not one."""
    if not (folder / "train.toml").exists():
        raise ConfigError(f"--again: {folder} is not the folder of a training run; choose another with --out")
    shutil.rmtree(folder)


@contextmanager
def _bar(config: "TrainConfig") -> Iterator["Callable[[], None]"]:
    from tqdm import tqdm

    with tqdm(total=config.budget_steps, unit="step", disable=None, leave=False, dynamic_ncols=True) as bar:
        yield lambda: bar.update() and None


def _say(line: str) -> None:
    from tqdm import tqdm

    with tqdm.external_write_mode(file=sys.stdout):
        print(line, flush=True)


def _line(epoch: "Epoch") -> str:
    metrics = "  ".join(f"validation {name} {value:.4f}" for name, value in epoch.metrics.items())
    why = "" if epoch.ended == "whole" else f"  ({epoch.failure or epoch.ended})"
    return (
        f"epoch {epoch.number:3}  {epoch.at_s:8.1f} s  step {epoch.steps:6}  lr {epoch.lr:.2g}  "
        f"training loss {epoch.loss:.4f}  {metrics}{why}"
    )


def _report(training: "Run") -> int:
    from rota.training.run import read_result

    result = read_result(training.result)
    for split in ("validation", "test"):
        values = ((name, math.nan if value is None else value) for name, value in result[split].items())
        print(f"{split}: ", "  ".join(f"{name} {value:.4f}" for name, value in values))
    print(training.folder)
    return 1 if result["failure"] else 0
