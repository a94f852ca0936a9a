"""A policy decides how the network changes. Every step takes 0.1 s, every epoch 5 steps."""

import csv
import json
import logging
from dataclasses import replace

import pytest
import torch

from rota.core.errors import ConfigError, InputError
from rota.core.network import Growth
from rota.training.clock import Length, ProfiledClock, StoppedClock
from rota.training.config import AllocationChange, TrainConfig
from rota.training.decisions import Decider
from rota.training.hyper import Hyperparameters
from rota.training.run import TrainingRun
from rota.training.setup import Setup

SETUP = Setup(model="convnet2", data="digits", threads=1, hyper=Hyperparameters(lr=0.003))
CONFIG = TrainConfig(
    setup=SETUP,
    epoch=Length(steps=5),
    budget_s=4.0,
    allocation=(AllocationChange(0.95, "up"),),  # seen after ten steps
    checkpoint_every_s=0.0,
)


class Equal:
    """Any structure: 0.1 s per step."""

    def __getitem__(self, key):
        return 0.1


class Prefers:
    """At each decision, ranks some changes before all others; keeps what it has seen."""

    def __init__(self, *rankings):
        self.rankings = rankings
        self.seen = []

    def probabilities(self, observation):
        self.seen.append(observation)
        first = self.rankings[len(observation.made)].split(", ")
        names = sorted(map(str, observation.actions), key=lambda name: [*first, name].index(name))
        shares = {name: 0.5 ** (place + 1) for place, name in enumerate(names)}
        shares[names[0]] += shares[names[-1]]  # of four: 9/16, 4/16, 2/16, 1/16
        return [shares[str(change)] for change in observation.actions]


@pytest.fixture(autouse=True)
def _on_profile(monkeypatch):
    monkeypatch.setattr(TrainingRun, "_clock", lambda self: ProfiledClock(Equal()))


def result_in(folder):
    return json.loads((folder / "result.json").read_text())


def test_three_decisions_are_made_from_the_first_up_on_one_before_each_epoch(tmp_path):
    run = TrainingRun(CONFIG, tmp_path, "", Prefers("deepen 1", "nothing", "deepen 0"))
    layers = [len(run.trainer.structure.layers) for _ in run.epochs()]
    assert layers == [11, 11, 14, 14, 17, 17, 17, 17]  # a layer with normalisation and ReLU each time
    assert [(d.steps, d.chosen) for d in run.decisions] == [
        (10, "deepen 1"),
        (15, "nothing"),
        (20, "deepen 0"),
    ]
    assert [d.at_s for d in run.decisions] == pytest.approx([1.0, 1.5, 2.0])
    assert [d.left_s for d in run.decisions] == pytest.approx([3.0, 2.5, 2.0])


def test_the_policy_sees_the_network_the_time_and_what_was_done(tmp_path):
    policy = Prefers("deepen 1", "nothing", "deepen 0")
    list(TrainingRun(CONFIG, tmp_path, "", policy).epochs())
    seen = policy.seen[1:]  # before training it is asked once whether it answers
    assert [len(observation.structure.layers) for observation in seen] == [11, 14, 14]
    assert [observation.made for observation in seen] == [(), (1,), (1, 3)]
    assert [observation.left for observation in seen] == pytest.approx([0.75, 0.625, 0.5])
    assert {tuple(map(str, observation.actions)) for observation in seen} == {
        ("deepen 0", "deepen 1", "deepen 2", "nothing")  # each block of the network, and nothing
    }


def test_which_actions_and_how_many_decisions_can_be_said(tmp_path):
    asked = replace(CONFIG, actions=("widen 0 48", "nothing"), decisions=1)
    run = TrainingRun(asked, tmp_path, "", Prefers("widen 0 48"))
    list(run.epochs())
    assert [d.probabilities for d in run.decisions] == [{"widen 0 48": 0.75, "nothing": 0.25}]
    assert result_in(tmp_path)["changes"] == [{"steps": 10, "change": "widen 0 48"}]


def test_decisions_are_kept_with_their_probabilities(tmp_path):
    run = TrainingRun(CONFIG, tmp_path, "", Prefers("deepen 1", "nothing", "deepen 0"), decided_by="agent 1")
    list(run.epochs())
    with (tmp_path / "decisions.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["steps"], row["chosen"], row["refused"]) for row in rows] == [
        ("10", "deepen 1", ""),
        ("15", "nothing", ""),
        ("20", "deepen 0", ""),
    ]
    names = ("p deepen 0", "p deepen 1", "p deepen 2", "p nothing")
    assert [float(rows[0][name]) for name in names] == [0.25, 0.5625, 0.125, 0.0625]
    found = result_in(tmp_path)
    assert found["decided_by"] == "agent 1"
    assert [(each["steps"], each["chosen"]) for each in found["decisions"]] == [
        (d.steps, d.chosen) for d in run.decisions
    ]
    assert found["decisions"][0]["probabilities"] == run.decisions[0].probabilities


def test_a_list_of_changes_leaves_no_decisions(tmp_path):
    list(TrainingRun(replace(CONFIG, changes=("deepen 1",)), tmp_path, "").epochs())
    assert result_in(tmp_path)["decisions"] == []
    assert not (tmp_path / "decisions.csv").exists()


def test_nothing_is_decided_while_there_is_no_room(tmp_path):
    up_and_down = (AllocationChange(0.95, "up"), AllocationChange(1.45, "down"), AllocationChange(2.45, "up"))
    policy = Prefers("deepen 1", "deepen 0", "nothing")
    run = TrainingRun(replace(CONFIG, allocation=up_and_down), tmp_path, "", policy)
    list(run.epochs())
    made = [(each["steps"], each["change"]) for each in result_in(tmp_path)["changes"]]
    assert made == [(10, "deepen 1"), (15, "shrink"), (25, "deepen 0")]
    assert [d.steps for d in run.decisions] == [10, 25, 30]


# ── what cannot be done ─────────────────────────────────────────────────────────────────────────────────────


def test_where_the_network_refuses_the_next_likeliest_is_done(tmp_path, caplog):
    asked = replace(CONFIG, actions=("shrink", "deepen 0", "nothing"), decisions=2)
    run = TrainingRun(asked, tmp_path, "", Prefers("shrink, deepen 0", "shrink"))
    with caplog.at_level(logging.WARNING, "rota"):
        list(run.epochs())
    assert [(d.chosen, d.refused) for d in run.decisions] == [("deepen 0", ("shrink",)), ("shrink", ())]
    assert caplog.messages == ["step 10: shrink cannot be done: shrink: the network has not grown"]


def test_what_nobody_measured_is_not_done_and_leaves_no_trace(tmp_path, monkeypatch):
    start = SETUP.trainer(StoppedClock(), seed=0).structure.fingerprint
    monkeypatch.setattr(TrainingRun, "_clock", lambda self: ProfiledClock({(start, 64): 0.1}))
    eager = TrainingRun(CONFIG, tmp_path / "eager", "", Prefers(*["deepen 2, deepen 0, deepen 1"] * 3))
    content = TrainingRun(CONFIG, tmp_path / "content", "", Prefers(*["nothing"] * 3))
    assert list(eager.epochs()) == list(content.epochs())
    assert {d.chosen for d in eager.decisions + content.decisions} == {"nothing"}
    assert {d.refused for d in eager.decisions} == {("deepen 2", "deepen 0", "deepen 1")}
    assert {d.refused for d in content.decisions} == {()}
    assert result_in(tmp_path / "eager")["test"] == result_in(tmp_path / "content")["test"]


def test_a_listed_change_that_nobody_measured_is_an_error(tmp_path, monkeypatch):
    start = SETUP.trainer(StoppedClock(), seed=0).structure.fingerprint
    monkeypatch.setattr(TrainingRun, "_clock", lambda self: ProfiledClock({(start, 64): 0.1}))
    with pytest.raises(InputError, match="no recorded time per step"):
        list(TrainingRun(replace(CONFIG, changes=("deepen 1",)), tmp_path, "").epochs())
    assert not (tmp_path / "train.toml").exists()  # found before training


def test_an_action_that_never_fits_the_network_is_found_before_training(tmp_path):
    with pytest.raises(InputError, match="deepen 3: the network has 3 blocks"):
        list(
            TrainingRun(
                replace(CONFIG, actions=("deepen 3", "nothing")), tmp_path, "", Prefers("nothing")
            ).epochs()
        )
    assert not (tmp_path / "train.toml").exists()


def test_a_network_that_cannot_grow_is_found_before_training(tmp_path):
    asked = replace(CONFIG, setup=Setup(model="transformer", threads=1))
    with pytest.raises(ConfigError, match="transformer: no block of it can grow"):
        list(TrainingRun(asked, tmp_path, "", Prefers("nothing")).epochs())


@pytest.mark.parametrize("answer", [[1.0], [0.5, 0.5, 0.5, 0.5], [float("nan")] * 4])
def test_a_policy_that_gives_no_probabilities_is_found_before_training(tmp_path, answer):
    class Odd:
        def probabilities(self, observation):
            return answer

    with pytest.raises(InputError, match="must add up to 1"):
        list(TrainingRun(CONFIG, tmp_path, "", Odd()).epochs())
    assert not (tmp_path / "train.toml").exists()


def test_checking_beforehand_leaves_the_random_numbers_alone():
    trainer = SETUP.trainer(StoppedClock(), seed=1)
    before = torch.get_rng_state()
    Decider(replace(CONFIG, actions=("deepen 0", "nothing")), Prefers("nothing")).check(trainer)
    assert torch.equal(torch.get_rng_state(), before)


# ── stopped, and asked for otherwise ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stopped_after", [1, 2, 3, 4, 5])
def test_a_run_that_is_stopped_anywhere_decides_and_ends_the_same(tmp_path, stopped_after):
    policy = Prefers("deepen 1", "nothing", "deepen 0")
    whole = list(TrainingRun(CONFIG, tmp_path / "a", "", policy).epochs())
    for number, _ in enumerate(TrainingRun(CONFIG, tmp_path / "b", "", policy).epochs(), 1):
        if number == stopped_after + 1:
            break
    assert list(TrainingRun(CONFIG, tmp_path / "b", "", policy).epochs()) == whole
    decided = [(tmp_path / name / "decisions.csv").read_bytes() for name in "ab"]
    assert decided[0] == decided[1]
    assert decided[0].count(b"\n") == 4
    results = [result_in(tmp_path / name) for name in "ab"]
    assert results[0] | {"provenance": ""} == results[1] | {"provenance": ""}


def test_a_run_that_is_stopped_in_the_middle_of_an_epoch_decides_once_before_it(tmp_path):
    policy = Prefers("deepen 1", "nothing", "deepen 0")
    whole = list(TrainingRun(CONFIG, tmp_path / "a", "", policy).epochs())
    steps = 0

    def stop_after_twelve():
        nonlocal steps
        steps += 1
        if steps == 12:
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        list(TrainingRun(CONFIG, tmp_path / "b", "", policy).epochs(stop_after_twelve))
    again = TrainingRun(CONFIG, tmp_path / "b", "", policy)
    assert list(again.epochs()) == whole
    assert [d.steps for d in again.decisions] == [10, 15, 20]


@pytest.mark.parametrize(
    "other", [{"adaptation": Prefers("nothing"), "decided_by": "agent 2"}, {"adaptation": None}]
)
def test_what_another_has_decided_is_not_taken_for_ones_own(tmp_path, other):
    asked = replace(CONFIG, decisions=1)
    list(TrainingRun(asked, tmp_path, "", Prefers("nothing"), "agent 1").epochs())
    assert (tmp_path / "train.toml").read_text().endswith("\n# decided by agent 1\n")
    with pytest.raises(InputError, match="another run is there"):
        list(TrainingRun(asked, tmp_path, "", **other).epochs())
    assert result_in(tmp_path)["decided_by"] == "agent 1"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"changes": ("deepen 0",)}, "changes: they are made as listed"),
        ({"budget_s": None, "epochs": 3}, "budget_s: an agent decides by the time"),
        ({"allocation": ()}, "allocation: an agent is asked once it goes up"),
        ({"allocation": (AllocationChange(4.0, "up"),)}, "within the budget it never does"),
        ({"allocation": (AllocationChange(1.0, "down"),)}, "within the budget it never does"),
        ({"actions": ("deepen 0",)}, "one of them 'nothing'"),
        ({"actions": ("nothing", "nothing")}, "different from each other"),
        ({"actions": ("deepn 0", "nothing")}, "Did you mean 'deepen'"),
        ({"decisions": 0}, "decisions is 0"),
    ],
)
def test_what_leaves_nothing_to_decide_is_refused(tmp_path, values, message):
    with pytest.raises(ConfigError, match=message):
        TrainingRun(replace(CONFIG, **values), tmp_path, "", Prefers("nothing"))


def test_what_was_chosen_by_rule_and_cannot_be_done_leaves_the_network_as_it_is(tmp_path, monkeypatch):
    """Not what happens to be offered first."""

    class Only(Growth):
        def choose(self, observation):
            return "deepen 1"

    def refuse(self, change):
        if change.grows:
            raise InputError("no")

    monkeypatch.setattr("rota.training.trainer.Trainer.change", refuse)
    monkeypatch.setattr(Decider, "check", lambda self, trainer: None)
    run = TrainingRun(CONFIG, tmp_path, "test", Only())
    list(run.epochs())
    assert {(each.chosen, each.refused) for each in run.decisions} == {("nothing", ("deepen 1",))}
