"""How good a placement agent is: figures by hand, the table, the file."""

import json
from dataclasses import replace

import pytest

from rota.core.errors import InputError
from rota.learning.files import kind_of_evaluation
from rota.learning.placement import compare as module
from rota.learning.placement.compare import case_of, compare, shuffled
from rota.learning.placement.outcome import (
    ComparedRow,
    PlacementComparison,
    read_comparison,
    table,
    write_comparison,
)
from rota.learning.placement.rollout import Scorer
from rota.library.processes import SerialPool, worker_pool
from rota.policies.allocation.registry import ALLOCATIONS


def tried(number, dispatch, era, learned, shuffled_=3.0):
    ratios = {"era": era, "finish": 1.25, "learned": learned}
    return ComparedRow(number, 4, 10, 2.0, dispatch, ratios, shuffled_)


FOUND = PlacementComparison((tried(0, 0.0, 1.5, 1.0), tried(0, 0.5, 2.0, 1.5), tried(1, 0.0, 1.1, 1.1)))


def test_the_agent_is_compared_with_the_best_rule_of_each_case():
    assert FOUND.behind.tolist() == pytest.approx([1.0 / 1.25 - 1, 1.5 / 1.25 - 1, 0.0])
    summary = FOUND.summary()
    assert summary["behind_best_other"] == pytest.approx(
        {"mean": (0.8 + 1.2 + 1.0) / 3 - 1, "worst": 0.2, "share_over_0.02": 1 / 3}
    )
    assert summary["others_take_longer"]["era"] == pytest.approx((1.5 + 2 / 1.5 + 1.0) / 3 - 1)
    assert summary["ratio"]["era"]["by_dispatch"] == pytest.approx({"0": 1.3, "0.5": 2.0})
    assert FOUND.shuffling_costs == pytest.approx((3.0 + 2.0 + 3 / 1.1) / 3 - 1)


def test_the_table_has_a_line_for_each_and_says_how_often_the_agent_is_behind():
    text = table(FOUND)
    assert text.splitlines()[0].split() == [
        "makespan", "÷", "lower", "bound", "0", "0.5", "all", "worst", "takes", "longer",
    ]  # fmt: skip
    assert "+20.0% at worst; more than 2% longer in 1" in text


def test_what_is_measured_is_called_by_its_name():
    target = replace(FOUND, goal="target")
    assert table(target).startswith("time to target ÷ lower bound ")
    assert target.at(0.5).goal == "target"


def test_a_file_that_does_not_say_its_goal_is_about_makespans(tmp_path):
    for goal in ("makespan", "target"):
        write_comparison(tmp_path, replace(FOUND, goal=goal), "rota evaluate")
        assert read_comparison(tmp_path)[0].goal == goal
    path = tmp_path / "evaluation.json"
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"goal": "fast"}))
    with pytest.raises(InputError, match="evaluate again"):
        read_comparison(tmp_path)
    del found["goal"]
    path.write_text(json.dumps(found))
    assert read_comparison(tmp_path)[0].goal == "makespan"


def test_what_was_written_is_read(tmp_path):
    write_comparison(tmp_path, FOUND, "rota evaluate")
    assert read_comparison(tmp_path) == (FOUND, "rota evaluate")
    assert kind_of_evaluation(tmp_path / "evaluation.json") == "placement"


@pytest.mark.parametrize("broken", ["", "{}", '{"format": "x"}', "[1]"])
def test_a_broken_file_says_how_to_make_it_again(tmp_path, broken):
    (tmp_path / "evaluation.json").write_text(broken)
    with pytest.raises(InputError, match="evaluate again"):
        read_comparison(tmp_path)


def test_a_file_without_the_agent_is_refused(tmp_path):
    write_comparison(tmp_path, FOUND, "x")
    facts = json.loads((tmp_path / "evaluation.json").read_text())
    del facts["tried"][0]["ratios"]["learned"]
    (tmp_path / "evaluation.json").write_text(json.dumps(facts))
    with pytest.raises(InputError, match="are not both there"):
        read_comparison(tmp_path)


# trying


def test_a_case_has_the_same_slots_at_each_dispatch_cost_and_other_noise_each_time():
    free, dear, lucky = case_of(3, 0.0, 0), case_of(3, 0.5, 0), case_of(3, 0.0, 1)
    assert free.scene.cluster == dear.scene.cluster == lucky.scene.cluster
    assert (free.scene.costs.dispatch_s, dear.scene.costs.dispatch_s) == (0.0, 0.5)
    assert free.scene.noise != lucky.scene.noise
    assert case_of(4, 0.0, 0).scene.cluster != free.scene.cluster


def test_shuffling_moves_weights_within_each_array():
    weights = Scorer(hidden=5, seed=0).weights
    other = shuffled(weights, 1)
    for before, after in zip(weights, other, strict=True):
        assert sorted(before.ravel().tolist()) == sorted(after.ravel().tolist())
    assert not (weights.a == other.a).all()


def test_all_are_tried_with_the_same_noise_and_the_number_of_workers_makes_no_difference(monkeypatch):
    monkeypatch.setattr(module, "DISPATCHES", (0.0, 0.5))
    weights = Scorer(hidden=5, seed=0).weights
    with worker_pool(2) as pool:
        one, two = compare(weights, 1, SerialPool()), compare(weights, 1, pool)
    assert one == two
    assert set(one.names) == set(ALLOCATIONS)
    assert len(one.tried) == 2
