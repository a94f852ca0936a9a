"""Files that were given to the wrong command."""

import tomllib
from pathlib import Path

import pytest

from rota import cli
from rota.commands.common import KEYS
from rota.commands.run_jobs import RAW as OF_JOBS
from rota.config.bind import keys
from rota.learning.config import LearnConfig
from rota.learning.joint.config import JointFile
from rota.learning.placement.config import PlacementFile
from rota.learning.scheduling.training import ScheduleFile
from rota.library.real_run import RAW as OF_TRIALS
from rota.library.real_run_config import JobsConfig, RunConfig
from rota.simulator.jobs_config import SimulateConfig
from rota.simulator.population_config import PopulationsConfig
from rota.training.config import TrainConfig
from rota.training.recorder.record import RecordConfig

CONFIG = Path(__file__).parents[2] / "config"
SPLITS = {"schedule-worlds.toml"}
"""Files that say what was learned from, and that no command takes."""
FILES = [
    path for path in sorted(CONFIG.rglob("*.toml")) if path.parent.name in KEYS and path.name not in SPLITS
]
TAKEN = {
    "simulate": {*keys(SimulateConfig), *keys(PopulationsConfig)},
    "run": {*keys(RunConfig), *keys(JobsConfig), *OF_JOBS, *OF_TRIALS},
    "train": {*keys(TrainConfig)},
    "record": {*keys(RecordConfig)},
    "learn": {*keys(LearnConfig), *keys(PlacementFile), *keys(JointFile), *keys(ScheduleFile)},
}


@pytest.mark.parametrize("command", KEYS)
def test_the_keys_are_those_of_the_command(command):
    assert KEYS[command] <= TAKEN[command]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_configuration_is_nearest_to_its_own_command(path):
    table = set(tomllib.loads(path.read_text()))
    counts = {command: len(found & table) for command, found in KEYS.items()}
    assert max(counts, key=counts.get) == path.parent.name
    assert sorted(counts.values())[-1] > sorted(counts.values())[-2]


@pytest.mark.parametrize(
    ("words", "file", "meant"),
    [
        (["simulate"], "run/local.toml", "run"),
        (["simulate"], "run/jobs.toml", "run"),
        (["simulate"], "learn/place.toml", "learn"),
        (["run", "--out", "x"], "simulate/shipped.toml", "simulate"),
        (["run", "--out", "x"], "simulate/populations.toml", "simulate"),
        (["learn"], "train/digits.toml", "train"),
        (["evaluate", "--leave-out", "model"], "train/digits.toml", "train"),
        (["train"], "record/curves.toml", "record"),
        (["record"], "train/digits.toml", "train"),
    ],
)
def test_another_command_is_told_whose_it_is(here, capsys, words, file, meant):
    assert cli.main([*words, str(CONFIG / file)]) == 2
    err = capsys.readouterr().err
    assert err.endswith(f". This is a configuration of rota {meant}: rota {meant} {CONFIG / file}\n")


def test_a_trace_is_told_from_a_configuration(here, capsys):
    (here / "a.csv").write_text("id,submit_s,gpus,duration_s\na,0,1,60\n")
    assert cli.main(["simulate", "a.csv"]) == 2
    assert capsys.readouterr().err.endswith("This is a trace (csv): rota simulate --trace a.csv\n")
    assert cli.main(["run", "a.csv", "--out", "x"]) == 2
    assert "This is a trace (csv), not a configuration" in capsys.readouterr().err


def test_a_mistake_in_a_configuration_of_its_own_is_only_that(here, capsys):
    (here / "a.toml").write_text('schedulers = ["fifo"]\nclustre = 1\n')
    assert cli.main(["simulate", "a.toml"]) == 2
    assert "This is" not in capsys.readouterr().err
