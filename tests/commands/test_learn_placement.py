"""`rota learn` and `rota evaluate` of an agent that places trials, as their user sees them."""

import json
import shutil
from pathlib import Path

import pytest

from rota import cli
from rota.learning.files import EVALUATION, EVENTS, HISTORY, PlacementHistoryRow, read_history
from rota.learning.placement import compare
from rota.learning.placement.outcome import read_comparison
from rota.policies.agents import read_facts
from rota.policies.allocation.registry import ALLOCATIONS

SMALL = """
[placement]
updates = 3
cases_per_update = 2
episodes_per_case = 2
hidden = 6
tests = 1

[placement.cases]
slots = [2, 3]
trials = [3, 4]
intervals = [2, 3]
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture
def rota(here, capsys):
    (here / "small.toml").write_text(SMALL)

    def run(*words):
        code = cli.main([*map(str, words)])
        return (code, *capsys.readouterr())

    return run


@pytest.fixture(scope="module", autouse=True)
def two_dispatch_costs():
    """Agents are tried at fewer dispatch costs than usual."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "DISPATCHES", (0.0, 0.5))
        yield


@pytest.fixture(scope="module")
def learned_once(tmp_path_factory, two_dispatch_costs):
    """An agent, learned as `small.toml` says."""
    folder = tmp_path_factory.mktemp("learned")
    (folder / "small.toml").write_text(SMALL)
    words = ["learn", folder / "small.toml", "--out", folder / "agent", "--workers", 1, "--quiet"]
    assert cli.main([*map(str, words)]) == 0
    return folder / "agent"


@pytest.fixture
def learned(here, learned_once):
    """A copy of it, in `agent`."""
    shutil.copytree(learned_once, here / "agent")


def learn(rota, *words):
    return rota("learn", "small.toml", "--out", "agent", "--workers", 1, "--quiet", *words)


def test_learn_writes_an_agent_how_it_went_and_how_good_it_is(rota):
    code, out, err = learn(rota)
    assert (code, err) == (0, "")
    assert out.startswith("agent: 3 updates, ")
    for name in ALLOCATIONS:
        assert f"\n{name} " in out
    assert "learned compared with the best rule of each of 2 cases" in out
    assert [row.update for row in read_history(Path("agent"), PlacementHistoryRow)] == [1, 2, 3]
    assert {HISTORY, EVENTS, EVALUATION, "agent.json", "weights.npz"} == {
        file.name for file in Path("agent").iterdir()
    }
    assert read_facts(Path("agent")).config["cases"]["slots"] == [2, 3]


@pytest.mark.usefixtures("learned")
def test_the_agent_can_be_used_and_evaluated(rota):
    _, first, _ = rota("evaluate", "--agent", "agent", "--json", "--out", "again", "--workers", 1, "--quiet")
    summary = read_facts(Path("agent")).evaluation
    assert {name: json.loads(first)["evaluation"][name] for name in summary} == summary
    assert read_comparison(Path("again"))[0] == read_comparison(Path("agent"))[0]
    code, out, _ = rota(
        "simulate", "--population", 4, "--steps", 100, "--slots", "1,2", "--seeds", 1, "--allocations",
        "fifo,learned", "--set", "options.learned.agent=agent", "--json",
    )  # fmt: skip
    assert code == 0
    assert [row["allocation"] for row in json.loads(out)] == ["fifo", "learned"]


@pytest.mark.usefixtures("learned")
def test_what_is_learned_stays_and_another_is_not_written_over(rota):
    before = Path("agent/weights.npz").read_bytes()
    code, _, err = learn(rota)
    assert (code, "learned already; --again learns it anew" in err) == (0, True)
    code, _, err = learn(rota, "--seed", 1)
    assert (code, "another agent is there" in err) == (2, True)
    assert Path("agent/weights.npz").read_bytes() == before
    code, _, _ = learn(rota, "--seed", 1, "--again")
    assert code == 0
    assert Path("agent/weights.npz").read_bytes() != before


@pytest.mark.usefixtures("learned")
def test_more_tests_are_tried_without_learning_again(rota):
    before = Path("agent/weights.npz").read_bytes()
    code, out, err = learn(rota, "--set", "placement.tests=2")
    assert (code, "tried on other cases" in err) == (0, True)
    assert "each of 4 cases" in out
    assert Path("agent/weights.npz").read_bytes() == before


def test_json_is_one_object_and_an_agent_for_a_target_is_tried_by_the_time_to_the_target(rota):
    code, out, _ = learn(rota, "--set", 'placement.cases.goal="target"', "--json")
    found = json.loads(out)
    assert code == 0
    assert found.keys() == {"agent", "updates", "decisions", "seconds", "decisions_per_s", "evaluation"}
    ratios = found["evaluation"]["ratio"]
    assert ratios.keys() == set(ALLOCATIONS)
    assert all(ratio["mean"] >= 1.0 for ratio in ratios.values())
    assert ratios["fifo"]["mean"] != ratios["finish"]["mean"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--set", "placement.updates=0"), "updates is 0; it must be at least 1"),
        (("--set", "placement.drawn=0"), "drawn is 0.0; it must be above 0"),
        (("--set", "placement.case.slots=[1,2]"), "Did you mean 'cases'?"),
        (("--set", "placement.cases.slots=[4,2]"), "slots is [4, 2]; give the least and the most"),
        (("--set", 'placement.cases.goal="fast"'), "makespan"),
        (("--recordings", "trees"), "--recordings: small.toml learns to place trials, from none"),
        (("--pooled",), "--pooled: small.toml learns to place trials"),
    ],
)
def test_bad_input_says_what_is_wrong(rota, words, says):
    code, out, err = rota("learn", "small.toml", "--out", "agent", *words)
    assert (code, out) == (2, "")
    assert says in err


@pytest.mark.usefixtures("learned")
def test_evaluating_takes_no_recordings(rota):
    code, _, err = rota("evaluate", "--agent", "agent", "--recordings", "trees")
    assert (code, "places trials, which needs none" in err) == (2, True)


def test_the_shipped_file_is_what_the_shipped_agent_was_learned_with():
    from rota.config.bind import bind
    from rota.config.load import read
    from rota.learning.placement.config import PlacementFile
    from rota.learning.placement.run import config_of
    from rota.policies.allocation.learned import SHIPPED

    file = ROOT / "config" / "learn" / "place.toml"
    assert bind(PlacementFile, read(file), file).placement == config_of(SHIPPED)
