"""`rota learn --live`: learn while networks really train, where nothing was recorded."""

import argparse
import json
import sys
import time
import tomllib
from pathlib import Path

from rota.commands.common import say
from rota.commands.learn import command_of
from rota.config.bind import bind
from rota.config.load import dump, override, read
from rota.core.errors import ConfigError, InputError
from rota.learning.agent import Agent, write_agent
from rota.learning.config import LiveConfig
from rota.learning.evaluate import best_fixed_of_each, rows
from rota.learning.files import is_agent, write_history
from rota.learning.online import LiveEpisode, Online
from rota.learning.outcome import table, totals
from rota.learning.problem import origin_digest
from rota.recordings.folder import provenance
from rota.training.recorder.live import LiveTree
from rota.training.recorder.record import RecordConfig
from rota.training.recorder.trees import TreesRecorder

OUT = Path("results/learn/live")


def run_live(args: argparse.Namespace) -> int:
    """Learn; prints a line per episode, and what the agent would do."""
    if args.config is not None or args.recordings or args.pooled:
        raise ConfigError("--live: learns without recordings; leave CONFIG, --recordings and --pooled out")
    if args.workers is not None:
        raise ConfigError("--live: trains one network after the other; leave --workers out")
    config = _config(args)
    out: Path = args.out or OUT
    if is_agent(out) and not args.again:
        raise InputError(
            f"{out}: an agent is there; give another folder with --out, or --again to learn anew"
        )
    recorder = _recorder(args, out)
    with recorder.common.alone():
        recorder.common.claim(recorder.asked())
        say("note: measures the seconds per step of all structures first", file=sys.stderr)
        step_times = recorder.known_step_times()
        trees = [LiveTree(recorder, scenario, step_times) for scenario in recorder.config.scenarios]
        online = Online(config, trees)
        began_s = time.perf_counter()
        for number, episode in enumerate(online.episodes(), 1):
            _tell(number, episode, args)
        _finish(online, out, time.perf_counter() - began_s, args)
    return 0


def _recorder(args: argparse.Namespace, out: Path) -> TreesRecorder:
    asked = bind(RecordConfig, override(read(args.live), ()), args.live)
    if len(asked.trees) != 1:
        raise ConfigError(f"{args.live}: has {len(asked.trees)} [[trees]]; --live learns from exactly one")
    return TreesRecorder(out / "recordings", asked.trees[0], 1, command_of(args))


def _config(args: argparse.Namespace) -> LiveConfig:
    return bind(LiveConfig, override({}, [*args.set, *([f"seeds={args.seed}"] if args.seed else [])]))


def _tell(number: int, episode: LiveEpisode, args: argparse.Namespace) -> None:
    done = "-".join(map(str, episode.sequence))
    drawn = f"episode {number:4}  {episode.scenario:<13} {done}  p {episode.probability:.3f}"
    line = f"{drawn}  accuracy {episode.accuracy:.2%}"
    say(line, file=sys.stderr if args.json else sys.stdout, flush=True)


def _finish(online: Online, out: Path, seconds: float, args: argparse.Namespace) -> None:
    problems, agent = [problem.trained for problem in online.known()], online.agent
    names = [problem.name for problem in problems]
    digests = [origin_digest(problem.tree) for problem in problems]
    fixed = best_fixed_of_each(problems)
    trained = sum(len(problem.sequences) for problem in problems)
    episodes = online.config.episodes * len(problems)
    about = {
        "digest": "",
        "seed": online.config.seeds[0],
        "stages": [{"trees": names, "digests": digests, "episodes": episodes, "temperature": 1.0}],
        "fixed": fixed,
        "started_from": "",
        "live": {"sequences_trained": trained},
        "seconds": round(seconds, 3),
        "episodes": episodes,
        "episodes_per_s": round(episodes / seconds, 3),
    }
    made = provenance(
        device="cpu", seed=online.config.seeds[0], command=command_of(args), libraries=("torch", "numpy")
    )
    write_history(out, online.rows)
    learned = Agent(agent.name, agent.options, agent.network, about)
    found = rows(learned, problems, learned.learned_from, learned.fixed)
    write_agent(out, learned, made, tomllib.loads(dump(online.config)), totals(found))
    if args.json:
        spent = {name: about[name] for name in ("episodes", "seconds", "episodes_per_s")}
        say(json.dumps({"scenarios": [row.to_json() | {"agent": str(out)} for row in found]} | spent))
    else:
        say(f"{out}: {episodes} episodes, {trained} sequences trained\n{table(found)}")
