"""Networks that grow in a real run: each growth policy, worked out by hand, and the wrong configurations.

A trial of `rota.execution.idle` is as good as what it has had: each step adds its `lr`, and one for each
change of its network. It trains four intervals of 10 steps, so there are three boundaries.
"""

import json

import pytest

from rota.cli import main
from rota.core.network import Change
from rota.core.population.events import Grown
from rota.execution.idle import FIRST
from rota.library.real_run import ExpectedCosts
from rota.results.population.run import read_population

CONFIG = """
trial = "rota.execution.idle:idle"
changes = ["deepen 0", "deepen 1"]

[population]
trials = 2
steps = 40
interval = 10

[population.start]
lr = { values = [0.5] }

[training]
step_s = 0.0001

[local]
slots = [{ cores = 0 }]
"""


@pytest.fixture
def run(tmp_path, capsys):
    """Runs the configuration with some settings in a folder of its own; gives what `--json` says."""

    def run(*settings):
        (tmp_path / "config.toml").write_text(CONFIG)
        words = [word for text in settings for word in ("--set", text)]
        out = tmp_path / "out"
        code = main(["run", str(tmp_path / "config.toml"), "--out", str(out), "--json", *words])
        said = capsys.readouterr()
        return code, json.loads(said.out) if code == 0 else said.err, out

    return run


@pytest.mark.parametrize(
    ("growth", "options", "changes", "gained"),
    [
        ("never", [], [], 0),
        ("at-start", [], ["deepen 0", "deepen 1"], 10 + 20 + 20),  # one more in the second interval, then two
        ("at-start", ["options.at-start.changes=1"], ["deepen 0"], 30),
        ("fixed", ["options.fixed.at=[1]"], ["deepen 0"], 20),
        ("stump", [], ["deepen 0"], 30),  # 30 of 40 steps are left, more than half; then 20, which are not
    ],
)
def test_networks_grow_as_the_policy_says(run, growth, options, changes, gained):
    code, found, out = run(f"growth={growth}", *options)
    assert code == 0
    for number, trial in enumerate(found["trials"]):
        assert trial["changes"] == changes
        assert trial["best_metric"] == pytest.approx(number * FIRST + 40 * 0.5 + gained)
    record = read_population(out)
    grown = [event for event in record.events(0) if isinstance(event, Grown)]
    assert [event.change for event in grown if event.trial == 0] == changes
    assert (record.summary.growth, record.summary.growths) == (growth, 2 * len(changes))


def test_a_random_policy_makes_changes_in_their_order(run):
    code, found, _ = run("growth=random", "population.trials=6")
    assert code == 0
    made = [trial["changes"] for trial in found["trials"]]
    assert all(changes == ["deepen 0", "deepen 1"][: len(changes)] for changes in made)
    assert len({len(changes) for changes in made}) > 1


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (["growth=stump", "changes=[]"], "growth is 'stump', but nothing says how networks may change"),
        (["growth=stunp"], "unknown growth policy 'stunp'. Did you mean 'stump'?"),
        (["changes=['deepn 0']"], "deepn"),
        (["population.deadline_s=0"], "deadline_s is 0; give seconds above 0"),
    ],
)
def test_what_cannot_be_is_said(run, settings, why):
    code, said, _ = run(*settings)
    assert code == 2
    assert why in said


def test_a_network_that_cannot_make_its_changes_is_refused_before_anything_runs(run):
    code, said, out = run("trial='rota.training.trial:network'", "training={}", "changes=['deepen 9']")
    assert (code, out.exists()) == (2, False)
    assert "9" in said


def test_the_structure_of_a_network_is_known_with_its_changes():
    settings = {"model": "convnet2", "data": "digits"}
    costs = ExpectedCosts("convnet2", 0.01, ("deepen 0",), settings)
    small, blocks = costs.network({}, ())
    large, grown = costs.network({}, ("deepen 0",))
    assert len(large.layers) > len(small.layers)
    assert len(grown) == len(blocks)
    assert costs.changes_allowed({}, ()) == (str(Change.parse("deepen 0")),)
    assert costs.changes_allowed({}, ("deepen 0",)) == ()
