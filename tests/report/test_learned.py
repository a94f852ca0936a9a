"""What agents learned and decide, as the page shows it."""

from dataclasses import replace

import pytest

from rota.figures.learned import read_learned
from rota.figures.placement import read_placement_learned
from rota.learning.outcome import read_evaluations
from rota.learning.placement.outcome import read_comparison
from rota.report.assemble import families
from rota.report.learning import (
    evaluation_section,
    learning_section,
    placement_comparison_section,
    placement_section,
)


def test_learning_curves_have_a_line_per_seed_and_what_it_is_the_mean_of(make_agent):
    section = learning_section(0, "joint", [read_learned(make_agent("joint", seed)) for seed in (0, 1)])
    accuracy, objective = section.blocks
    assert [(line["name"], line["faint"]) for line in accuracy["lines"]] == [
        ("seed 0", True), ("seed 0", False), ("seed 1", True), ("seed 1", False),
    ]  # fmt: skip
    faint = accuracy["lines"][0]
    assert faint["x"] == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert faint["y"][-1] == 0.59
    assert objective["y"]["label"] == "objective"
    assert section.about.startswith("2 agents, a colour per seed; 200 episodes in all")


def test_agents_side_by_side_are_one_family(make_agent):
    agents = [read_learned(make_agent(name, seed)) for name in ("early", "late") for seed in (0, 1)]
    assert [(name, len(family)) for name, family in families(agents)] == [("learned", 4)]
    assert [(name, len(family)) for name, family in families(agents[:2])] == [("early", 2)]
    section = learning_section(0, "learned", agents)
    assert [block["title"] for block in section.blocks[::2]] == ["Accuracy: early", "Accuracy: late"]


def test_what_learning_brought_is_told_at_a_glance(make_agent):
    found = learning_section(0, "joint", [read_learned(make_agent("joint"))]).glance
    assert found.says == "learned: the accuracy drawn rises from 50.0% to 59.0%"


def test_an_agent_that_places_trials_shows_its_ratio_and_its_entropy(placement_agent):
    section = placement_section(0, read_placement_learned(placement_agent))
    ratio, entropy = section.blocks
    assert ratio["lines"][0]["x"] == [1, 2, 3]
    assert ratio["lines"][0]["y"] == [1.4, 1.3, 1.2]
    assert entropy["lines"][0]["y"] == [2, 2, 2]
    assert section.about == "3 updates, 300 decisions, 6 s"
    assert section.glance.says == (
        "learned to place trials from 300 decisions; meanwhile populations took 1.3 times the lower bound "
        "(median)"
    )


def test_scenarios_are_a_table_with_what_others_reach(evaluated):
    section = evaluation_section(0, *read_evaluations(evaluated), evaluated)
    rows = section.blocks[0]["rows"]
    assert [cell[1] for cell in rows[0]] == [
        "ConvNet2 early", "1 of 9", "1.00", "60.00%", "50.00%", "55.00%", "–", "61.00%", "deepen 1, nothing",
    ]  # fmt: skip
    assert rows[1][0][1] == "ConvNet2 late (unseen)"
    assert rows[0][6][0] is None  # there is no fixed sequence to sort by
    assert section.glance.says == "found the best sequence in 1 of 2 scenarios"
    assert section.glance.others.startswith("headroom 0.75 on average")


def test_probabilities_are_a_map_per_scenario(evaluated):
    section = evaluation_section(0, *read_evaluations(evaluated), evaluated)
    (heat,) = section.blocks[1:]
    assert heat["actions"] == ["nothing", "deepen 0", "deepen 1"]
    early, late = heat["maps"]
    assert early["probabilities"] == [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]
    assert (early["chosen"], early["rank"], early["of"]) == ([2, 0], 1, 9)
    assert late["label"] == "late, unseen"


def test_the_time_to_a_target_is_called_that(placement_agent):
    found, command = read_comparison(placement_agent)
    (table,) = placement_comparison_section(0, replace(found, goal="target"), command, placement_agent).blocks
    assert table["title"] == "Time to target ÷ lower bound"
    learned = read_placement_learned(placement_agent)._replace(goal="target")
    assert placement_section(0, learned).blocks[0]["y"]["label"] == "time to target ÷ lower bound"


def test_the_agent_is_beside_the_rules_at_each_dispatch_cost(placement_agent):
    section = placement_comparison_section(0, *read_comparison(placement_agent), placement_agent)
    (table,) = section.blocks
    assert [head["name"] for head in table["heads"][:4]] == [
        "allocation",
        "all",
        "dispatch 0",
        "dispatch 0.5",
    ]
    assert [[cell[1] for cell in row] for row in table["rows"]] == [
        ["fifo", "2.500", "2.000", "3.000", "3.000", "+100.0%"],
        ["learned", "1.250", "1.000", "1.500", "1.500", ""],
        ["learned, shuffled", "5.000", "4.000", "6.000", "6.000", "+300.0%"],
    ]
    assert section.glance.winner == "learned"
    assert section.glance.others == "fifo takes 2.0 times as long"
    assert section.glance.says == "takes 1.250 times as long as the lower bound, on average"
    assert section.glance.bars[0][2] == pytest.approx(1.25)
