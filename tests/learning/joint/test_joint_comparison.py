"""Comparisons of joint agents: means, intervals over clusters, their file, figure and section of a report."""

from pathlib import Path

import pytest

from rota.figures.files import draw_joint
from rota.figures.joint import lines
from rota.learning.joint.baselines import Reached, all_rules
from rota.learning.joint.evaluate import (
    ComparedJointCase,
    JointComparison,
    in_words,
    read_joint_comparison,
    rules_by_name,
    write_comparison,
)
from rota.learning.joint.run import _some
from rota.report.joint import joint_comparison_section


def row(number: int, cluster: int, agent: float, **other: float) -> ComparedJointCase:
    found = {
        "pairs": "net-digits", "trials": 4, "slots": 3, "deadline_s": 10.0, "best_rule": 0.5,
        "untrained": 0.4, "random": 0.3, "oracle": 0.9, "agent_test": 0.5, "rule_test": 0.5,
        "agent_time": 0.5, "rule_time": 1.0, "growths": 1, "decisions": 20, "seconds": 0.01,
    }  # fmt: skip
    return ComparedJointCase(number=number, cluster=cluster, agent=agent, **{**found, **other})


FOUND = JointComparison("a", "promote + never", (row(0, 0, 0.6), row(1, 0, 0.6), row(2, 1, 0.8)))


def test_means_are_over_cases_and_the_interval_over_clusters():
    # gains of 0.1, 0.1 and 0.3; clusters 0.1 and 0.3: mean 0.2 ± 12.706 × 0.1414 ÷ √2
    said = FOUND.to_json()
    assert said["difference"] == pytest.approx(0.5 / 3)
    assert (said["low"], said["high"]) == pytest.approx((0.2 - 1.2706, 0.2 + 1.2706), abs=1e-4)
    assert said["captured"] == pytest.approx(0.5 / 3 / 0.4)
    assert (said["cases"], said["clusters"], said["time_to_rule_ratio"]) == (3, 2, 0.5)
    assert said["decisions_per_s"] == 2000.0
    assert "+16.67 points" in in_words(FOUND)
    assert "no difference" in in_words(FOUND)
    assert "around the mean of 2 independent groups" in in_words(FOUND)


def test_of_one_cluster_the_cases_vary():
    found = JointComparison("a", "r", (row(0, 7, 0.6), row(1, 7, 0.8)))
    said = found.to_json()
    assert (said["low"], said["high"], said["clusters"]) == pytest.approx((-1.0706, 1.4706, 1), abs=1e-4)
    assert in_words(found).endswith("2 cases, the interval is over cases, all of them related")


def test_from_one_case_no_difference_can_be_told():
    found = JointComparison("a", "r", (row(0, 0, 0.6),))
    said = found.to_json()
    assert (said["difference"], said["low"], said["high"]) == (pytest.approx(0.1), None, None)
    assert in_words(found).endswith("on one case, from which no difference can be told")


def test_a_network_with_fewer_trees_than_its_share_gives_each_once():
    folders = [Path("a/0"), Path("a/1"), *(Path(f"b/{at}") for at in range(10))]
    found = _some(folders, 8)
    assert found[:2] == (Path("a/0"), Path("a/1"))
    assert len(set(found)) == len(found) == 6


def test_a_rule_that_was_never_reached_counts_as_the_deadline():
    found = Reached(((1.0, 0, 0.2), (2.0, 1, 0.4), (3.0, 0, 0.3)), (0.1, 0.2))
    assert (found.accuracy, found.test_accuracy) == (0.4, 0.2)
    assert min(1.0, found.time_to(0.4) / 10.0) == 0.2
    assert min(1.0, found.time_to(0.5) / 10.0) == 1.0


def test_rules_have_names_of_their_own():
    assert len(rules_by_name()) == len(all_rules()) > 100
    assert "promote(reduction_factor=2) + never" in rules_by_name()


def test_the_file_the_figure_and_the_section(tmp_path):
    write_comparison(tmp_path, FOUND, "rota evaluate --agent a")
    found, command = read_joint_comparison(tmp_path)
    assert (found, command) == (FOUND, "rota evaluate --agent a")
    agent, _, _, oracle = lines(found)
    assert (agent.mean, agent.clusters) == (pytest.approx(50 / 3), pytest.approx([10.0, 30.0]))
    assert oracle.mean == pytest.approx(40.0)
    (figure,) = draw_joint(found, tmp_path, command)
    assert figure.stat().st_size > 10_000
    section = joint_comparison_section(0, found, command, Path("b"))
    assert [cells[0][0] for cells in section.blocks[0]["rows"]][:2] == [
        "joint agent",
        "the best rule in training",
    ]
