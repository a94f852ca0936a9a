"""The figures of how agents learned: their numbers by hand, and that they can be drawn."""

import io
import math
from pathlib import Path

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.figures import learned_objective, learned_transfer
from rota.figures.learned import (
    DrawnAgent,
    LearnedStage,
    agents_in,
    alike,
    in_time,
    percent,
    read_learned,
    rolling,
)
from rota.figures.page import save
from rota.learning.files import HistoryRow, write_history
from rota.policies.agents import AgentFacts, write_agent_file


def agent(folder, *stages, seed=0, accuracies=None, started_from="", network="original"):
    """Stages are (scenario, temperature) of two rows of 10 episodes each; objectives are 1, 2, 3 …"""
    stages = stages or (("early", 1.0),)
    every = iter(accuracies or [0.5] * 2 * len(stages))
    history = [
        HistoryRow(
            number, episodes, 1.0 + 2 * number + (episodes == 20), 0.0, next(every), 1.0, 0.01, temperature
        )
        for number, (_, temperature) in enumerate(stages)
        for episodes in (10, 20)
    ]
    said = [LearnedStage((f"net/{scenario}",), 20, temperature) for scenario, temperature in stages]
    return DrawnAgent(
        Path(folder), network, seed, tuple(said), started_from, "rota learn a.toml", tuple(history)
    )


def texts(figure):
    return [text.get_text() for text in figure.texts]


def assert_png(figure):
    stream = io.BytesIO()
    save(figure, stream, dots_per_in=40)
    assert stream.getvalue().startswith(b"\x89PNG")


def test_a_rolling_mean_begins_when_there_were_enough_episodes_and_weighs_rows_by_them():
    where, means = rolling([10, 20, 40], [1.0, 2.0, 5.0], 20)
    assert where.tolist() == [20, 40]
    assert means.tolist() == [1.5, 5.0]
    assert rolling([10, 20, 40], [1.0, 2.0, 5.0], 30)[1].tolist() == [(2.0 * 10 + 5.0 * 20) / 30]


def test_a_rolling_mean_over_more_than_there_is_is_the_mean_of_all():
    where, means = rolling([10, 20], [1.0, 2.0], 100)
    assert (where.tolist(), means.tolist()) == ([20], [1.5])
    assert rolling([10, 20], [1.0, 2.0], 1)[1].tolist() == [1.0, 2.0]


def test_a_rolling_mean_is_over_one_episode_at_least():
    where, means = rolling([1, 2, 3], [1.0, 2.0, 5.0], 0)
    assert (where.tolist(), means.tolist()) == ([1, 2, 3], [1.0, 2.0, 5.0])


def short(folder, *scenarios):
    """Stages of four episodes."""
    stages = tuple(LearnedStage((f"net/{scenario}",), 4, 1.0) for scenario in scenarios)
    history = tuple(
        HistoryRow(number, episodes, 1.0, 0.0, 0.125 * episodes, 1.0, 0.01, 1.0)
        for number in range(len(stages))
        for episodes in (2, 4)
    )
    return DrawnAgent(Path(folder), "original", 0, stages, "", "rota learn a.toml", history)


def test_agents_with_few_episodes_are_drawn():
    alone, before = short("s/late", "late"), short("t/a", "early", "late")
    assert_png(learned_objective.objective_figure([alone, before], "f", "rota plot"))
    (panel,) = learned_transfer.panels([alone], [before])
    assert (panel.window, panel.scratch.accuracy.tolist()) == (1, [0.25, 0.5])
    assert_png(learned_transfer.transfer_figure([alone], [before], "rota plot"))


def test_scenarios_are_in_order_of_time_and_others_follow():
    assert in_time(["late", "mine", "early", "late", "another"]) == ["early", "late", "mine", "another"]


def test_percentages_have_no_more_digits_than_they_need():
    assert [percent(0.62), percent(0.625), percent(0.0)] == ["62%", "62.5%", "0%"]


def test_agents_that_differ_in_their_seed_are_together():
    agents = [agent("f/a/seed1", seed=1), agent("f/a/seed0"), agent("f/b")]
    assert [[each.seed for each in group] for group in alike(agents)] == [[0, 1], [0]]


def test_a_stage_is_named_by_its_scenarios_or_by_how_many_there_are():
    two, three = LearnedStage(("net/early", "net/late"), 1, 1.0), LearnedStage(("a/x", "a/y", "b/x"), 1, 1.0)
    assert [two.said(models=False), two.said(models=True)] == ["early + late", "net/early + net/late"]
    assert [three.said(models=False), three.said(models=True)] == ["3 scenarios", "3 scenarios of a, b"]


def write(folder, **changes):
    folder.mkdir(parents=True)
    stages = [{"trees": ["net/early"], "episodes": 20, "temperature": 1.0}]
    about = {"seed": 3, "stages": stages, "started_from": ""} | changes
    made = {"command": "rota learn a.toml"}
    facts = AgentFacts(kind="adaptation", network="structural", about=about, provenance=made, sha256="")
    write_agent_file(folder, facts, {})
    write_history(folder, agent("").history)


def test_agents_are_read_with_their_histories_and_without_weights(tmp_path):
    write(tmp_path / "joint" / "seed3")
    (tmp_path / "begun").mkdir()
    (found,) = agents_in(tmp_path)
    assert (found.network, found.seed, found.command) == ("structural", 3, "rota learn a.toml")
    assert found.name == str(tmp_path / "joint")
    assert found.stages == (LearnedStage(("net/early",), 20, 1.0),)
    assert [row.objective for row in found.of_stage(0)] == [1.0, 2.0]
    assert found.of_stage(1) == []


def test_a_file_that_is_no_agent_is_an_error_that_names_it(tmp_path):
    write(tmp_path / "a", stages=7)
    with pytest.raises(InputError, match=r"a/agent\.json: stages: 7 is not a list; learn it again"):
        read_learned(tmp_path / "a")


def test_stages_follow_each_other_and_rolling_means_begin_anew():
    (panel,) = learned_objective.panels([agent("a", ("early", 1.0), ("late", 10.0))])
    assert panel.title == "early → late, temperature 10"
    assert panel.stages == [(0, "early"), (20, "late")]
    line = panel.tracks[0].objective
    assert line.episodes.tolist() == [10, 20, 30, 40]
    assert line.values.tolist() == [1.0, 2.0, 3.0, 4.0]
    np.testing.assert_equal(line.smooth_episodes, [10, 20, math.nan, 30, 40, math.nan])
    np.testing.assert_equal(line.smooth, [1.0, 2.0, math.nan, 3.0, 4.0, math.nan])


def test_panels_that_would_be_named_alike_have_the_names_of_their_folders():
    agents = [agent("f/lr=0.1,x=1"), agent("f/lr=0.2,x=1")]
    assert learned_objective.titles(agents) == ["lr=0.1\nx=1", "lr=0.2\nx=1"]


def test_single_episodes_far_away_do_not_flatten_what_is_to_be_seen():
    values = np.r_[np.zeros(500), np.ones(500), 1000.0]
    line = learned_objective.ObjectiveLine(np.arange(1001.0), values, np.array([1.0]), np.array([0.5]))
    assert learned_objective.limits([line]) == pytest.approx((-0.08, 1.08))


def test_a_sheet_shows_a_family_and_says_how_it_was_made():
    agents = [agent(f"f/{name}/seed{seed}", seed=seed) for name in "abcde" for seed in (0, 1)]
    figure = learned_objective.objective_figure(agents, "results/learn/f", "rota plot")
    assert len(figure.axes) == 2 * 5
    assert "results/learn/f: 10 agents, a colour per seed; strong lines: rolling mean over 5% of a stage" in (
        texts(figure)
    )
    assert any("rota learn a.toml" in text for text in texts(figure))
    assert_png(figure)


def test_without_a_history_there_is_no_sheet():
    with pytest.raises(InputError, match="f: no agent that says how it learned"):
        learned_objective.objective_figure([], "f", "rota plot")


SCRATCH = [agent("s/late/seed0", ("late", 1.0), accuracies=[0.5, 0.6])]


def test_the_jump_start_is_the_difference_of_the_first_points():
    ways = [
        agent("t/b", ("early", 1.0), ("late", 10.0), accuracies=[0.9, 0.9, 0.4, 0.8]),
        agent("t/a", ("early", 1.0), ("late", 1.0), accuracies=[0.9, 0.9, 0.55, 0.7]),
        agent("t/a", ("early", 1.0), ("late", 1.0), accuracies=[0.9, 0.9, 0.65, 0.7], seed=1),
    ]
    (panel,) = learned_transfer.panels(SCRATCH, ways)
    assert (panel.title, panel.window) == ("early → late", 2)  # a tenth of 20 episodes
    assert panel.scratch.accuracy.tolist() == [0.5, 0.6]
    assert [curve.temperature for curve in panel.transfers] == [1.0, 10.0]
    assert [curve.jump for curve in panel.transfers] == pytest.approx([0.1, -0.1])
    assert panel.transfers[0].accuracy.tolist() == pytest.approx([0.6, 0.7])


def test_only_what_was_learned_from_scratch_by_the_same_network_is_compared():
    ways = [
        agent("t/a", ("early", 1.0), ("middle", 1.0)),
        agent("t/b", ("early", 1.0), ("late", 1.0), network="structural"),
        agent("t/c", ("late", 1.0)),
    ]
    assert learned_transfer.panels(SCRATCH, ways) == []
    with pytest.raises(InputError, match="no transfer to a scenario that was also learned from scratch"):
        learned_transfer.transfer_figure(SCRATCH, ways, "rota plot")


def test_the_source_is_all_that_came_before():
    chain = agent("t", ("early", 1.0), ("late", 1.0), ("middle", 1.0))
    assert learned_transfer.source(chain) == "early → late"
    assert learned_transfer.source(agent("t", started_from="results/learn/joint")) == "joint"
    assert learned_transfer.source(agent("t")) == ""


def test_the_comparison_marks_the_jump_start():
    ways = [agent("t/a", ("early", 1.0), ("late", 1.0), accuracies=[0.9, 0.9, 0.625, 0.7])]
    figure = learned_transfer.transfer_figure(SCRATCH, ways, "rota plot")
    (axes,) = figure.axes
    assert "+12.5" in [text.get_text() for text in axes.texts]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["from scratch", "1: +12.5"]
    assert_png(figure)
