"""`rota evaluate --agent` of an agent that places trials: try it beside the rules."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rota.commands.say import say
from rota.core.errors import ConfigError

if TYPE_CHECKING:
    from rota.learning.placement.outcome import Comparison


def places_trials(folder: Path | None) -> bool:
    """Whether that is the folder of such an agent."""
    from rota.learning.placement.agents import is_placement_agent

    return folder is not None and is_placement_agent(folder)


def evaluate_placement(args: argparse.Namespace) -> int:
    """Try it; prints a table, or one JSON object."""
    from rota.commands.learn_placement import tried, workers_of
    from rota.learning.placement.report import table
    from rota.learning.placement.run import config_of
    from rota.policies.allocation.agent import read_weights

    _refuse_others(args)
    found = tried(read_weights(args.agent), config_of(args.agent), workers_of(args), args)
    _keep(found, args)
    if args.json:
        say(json.dumps({"agent": str(args.agent), "evaluation": found.to_json()}))
    else:
        say(f"{args.agent}\n{table(found)}")
    return 0


def _refuse_others(args: argparse.Namespace) -> None:
    """What is for learning, or for agents that change networks."""
    if args.recordings:
        raise ConfigError(f"--recordings: {args.agent} places trials, which needs none; leave it out")
    given = {"CONFIG": args.config, "--set": args.set, "--seed": args.seed, "--again": args.again}
    for name, value in given.items():
        if value:
            raise ConfigError(f"{name}: is for learning; leave it out with --agent")


def _keep(found: "Comparison", args: argparse.Namespace) -> None:
    """Write what was tried, and draw it, as far as that is asked for."""
    from rota.commands.evaluate import command_of
    from rota.learning.placement.outcome import write_comparison

    if args.out is not None:
        write_comparison(args.out, found, command_of(args))
    if args.figures is not None:
        from rota.figures.files import draw_comparison

        for file in draw_comparison(found, args.figures, command_of(args)):
            say(f"note: drawn into {file}", file=sys.stderr)
