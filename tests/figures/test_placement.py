"""The figures of agents that place trials: their numbers by hand, and that they are found and drawn."""

import argparse
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from rota.commands import plot
from rota.core.errors import InputError
from rota.figures.files import draw_comparison, draw_learned
from rota.figures.learned import agents_in
from rota.figures.page import save
from rota.figures.placement import (
    comparison_subject,
    learning,
    panels,
    placement_comparison_figure,
    placement_learning_figure,
    ratio_ticks,
    read_placement_learned,
    title,
)
from rota.learning.files import PlacementHistoryRow, write_history
from rota.learning.placement.outcome import ComparedRow, PlacementComparison, write_comparison
from rota.policies.agents import AgentFacts, write_agent_file


def tried(number, dispatch, learned, *, fifo=2.0, finish=1.25, shuffled=1.5, slots=4):
    ratios = {"learned": learned, "mine": 3.0, "finish": finish, "fifo": fifo}
    return ComparedRow(number, slots, 10 + number, 2.0 + number, dispatch, ratios, shuffled)


FOUND = PlacementComparison(
    (
        tried(0, 0.0, 1.25),
        tried(1, 0.0, 1.5, slots=9),
        tried(2, 0.0, 1.0, fifo=1.125, shuffled=2.5),
        tried(0, 0.5, 1.0),
    )
)


def rows(count):
    """Ratios are 2, 3, 4 …, entropies 1, 2, 3 …"""
    return [PlacementHistoryRow(n, 10.0 * n, 100, 1.0 + n, float(n), 0.01) for n in range(1, count + 1)]


def write_agent(folder, *, updates=2, found=FOUND):
    """As far as figures see it."""
    folder.mkdir(parents=True)
    made = {"command": "rota learn place"}
    facts = AgentFacts(kind="placement", network="scorer", provenance=made, sha256="")
    write_agent_file(folder, facts, {})
    write_history(folder, rows(updates), PlacementHistoryRow)
    write_comparison(folder, found, "rota learn place")


def texts(figure):
    return [text.get_text() for text in figure.texts]


def assert_png(figure):
    stream = io.BytesIO()
    save(figure, stream, dots_per_in=40)
    assert stream.getvalue().startswith(b"\x89PNG")


# how good it is


def test_an_agent_that_is_level_with_the_best_rule_everywhere_is_drawn():
    level = PlacementComparison((tried(0, 0.0, 1.25), tried(1, 0.0, 1.25)))
    assert_png(placement_comparison_figure(level, ("figure: rota plot",)))


def test_each_dispatch_cost_has_all_allocations_in_the_order_of_the_colours():
    free, dear = panels(FOUND)
    assert (free.dispatch, dear.dispatch) == (0.0, 0.5)
    assert [each.name for each in free.taken] == ["fifo", "finish", "learned", "mine", "learned, shuffled"]
    fifo, _, learned, _, shuffled = free.taken
    assert fifo[1:] == (pytest.approx(5.125 / 3), 1.125, 2.0)
    assert learned[1:] == (1.25, 1.0, 1.5)
    assert shuffled[1:] == (pytest.approx(5.5 / 3), 1.5, 2.5)
    assert [free.title, dear.title] == ["dispatch is free", "a dispatch costs 50%\nof an interval"]


def test_cases_are_sorted_and_say_who_is_ahead_and_by_how_much():
    free, dear = panels(FOUND)
    assert free.duels == [
        (pytest.approx(1.0 / 1.125 - 1), "fifo"),
        (0.0, "finish"),
        (pytest.approx(0.2), "finish"),
    ]
    assert [duel.winner for duel in free.duels] == ["learned", "", "finish"]
    assert free.score == "ahead in 1, level in 1, behind in 1\nfrom -11.1% to +20.0%"
    assert dear.score == "ahead in 1, behind in 0\nfrom -20.0% to -20.0%"


@pytest.mark.parametrize(
    ("learned", "said"),
    [(1.0, "20.0% less time than"), (1.5, "20.0% more time than"), (1.25, "as long as")],
)
def test_the_title_says_who_takes_longer(learned, said):
    found = PlacementComparison((tried(0, 0.0, learned),))
    assert title(found) == f"Placing trials: the agent takes {said} the best rule of each case, on average"


def test_what_was_tried_is_said():
    assert comparison_subject(FOUND) == (
        "4 cases it has not learned from: 10 to 12 trials on 4 to 9 slots, "
        "the fastest up to 4× as fast as the slowest"
    )


def test_an_axis_of_ratios_has_few_marks():
    assert ratio_ticks(1.3) == [1.0, 1.2]
    assert ratio_ticks(3.5) == [1.0, 1.2, 1.5, 2.0, 3.0]
    assert ratio_ticks(60.0) == [1.0, 2.0, 5.0, 10.0, 50.0]


def test_a_comparison_is_drawn_in_two_rows_with_bars_from_the_bound_on():
    figure = placement_comparison_figure(FOUND, ("figure: rota plot",))
    upper, lower = figure.axes[:2]
    assert len(figure.axes) == 2 * 2 + 1
    assert [text.get_text() for text in upper.texts] == ["1.71", "1.25", "1.25", "3.00", "1.83"]
    assert {bar.get_x() for bar in upper.patches} == {1.0}
    assert [bar.get_height() for bar in lower.patches] == pytest.approx([1.0 / 1.125 - 1, 0.0, 0.2])
    names = [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]
    assert names == ["finish is ahead", "learned is ahead"]
    assert_png(figure)


def test_the_time_to_a_target_is_called_that(tmp_path):
    target = replace(FOUND, goal="target")
    assert placement_comparison_figure(target, ()).axes[0].get_xlabel() == "time to target ÷ lower bound"
    assert placement_comparison_figure(FOUND, ()).axes[0].get_xlabel() == "makespan ÷ lower bound"
    write_agent(tmp_path / "place", found=target)
    facts = json.loads((tmp_path / "place" / "agent.json").read_text())
    config = {"config": {"cases": {"goal": "target"}}}
    (tmp_path / "place" / "agent.json").write_text(json.dumps(facts | config))
    figure = placement_learning_figure(read_placement_learned(tmp_path / "place"), "rota plot")
    assert figure.axes[0].get_ylabel() == "time to target ÷ lower bound"


def test_without_any_case_there_is_nothing_to_draw():
    with pytest.raises(InputError, match="no case was tried"):
        PlacementComparison(())


# how it learned


def test_learning_has_a_rolling_mean_over_a_twentieth_of_the_updates():
    found = learning(rows(60))
    assert found.window == 3
    assert found.ratio.values[:3].tolist() == [2.0, 3.0, 4.0]
    assert found.ratio.smooth_episodes[:2].tolist() == [3, 4]
    assert found.ratio.smooth[:2].tolist() == [3.0, 4.0]
    assert found.entropy.smooth[-1] == 59.0
    assert learning(rows(4)).window == 1


def test_an_agent_is_read_with_how_it_learned(tmp_path):
    write_agent(tmp_path / "place")
    found = read_placement_learned(tmp_path / "place")
    assert (found.command, found.rows) == ("rota learn place", rows(2))
    (tmp_path / "place" / "updates.csv").unlink()
    assert read_placement_learned(tmp_path / "place") is None


def test_an_agent_without_any_update_has_not_learned(tmp_path):
    write_agent(tmp_path / "place", updates=0)
    assert read_placement_learned(tmp_path / "place") is None


def test_an_agent_that_does_not_say_how_it_was_learned_is_an_error_that_names_it(tmp_path):
    write_agent(tmp_path / "place")
    (tmp_path / "place" / "agent.json").write_text("{}")
    with pytest.raises(InputError, match=r"place/agent\.json: not the facts of an agent; .* learn it again"):
        read_placement_learned(tmp_path / "place")


def test_learning_is_drawn_from_the_lower_bound_on_and_says_how_much_there_was(tmp_path):
    write_agent(tmp_path / "place", updates=60)
    figure = placement_learning_figure(read_placement_learned(tmp_path / "place"), "rota plot")
    upper, lower = figure.axes
    assert (upper.get_ylim()[0], lower.get_ylim()[0]) == (1.0, 0.0)
    assert f"{tmp_path / 'place'}: 60 updates, 6,000 decisions, 10 min" in texts(figure)
    assert upper.get_title(loc="left").endswith("strong lines: rolling mean over 3 updates")
    assert_png(figure)


# files


def test_agents_that_place_trials_are_not_taken_for_others(tmp_path):
    write_agent(tmp_path / "place")
    assert agents_in(tmp_path) == []


def test_every_agent_that_places_trials_is_drawn_as_far_as_it_says(tmp_path):
    write_agent(tmp_path / "learn" / "place")
    write_agent(tmp_path / "learn" / "more" / "seed1")
    (tmp_path / "learn" / "more" / "seed1" / "evaluation.json").unlink()
    files = draw_learned(tmp_path / "learn", tmp_path / "out", "rota plot")
    assert [str(file.relative_to(tmp_path / "out")) for file in files] == [
        "more/seed1/learning.png",
        "place/learning.png",
        "place/comparison.png",
    ]


def test_a_comparison_is_drawn_where_it_is_asked_for(tmp_path):
    (file,) = draw_comparison(FOUND, tmp_path / "there", "rota evaluate --agent place")
    assert file == tmp_path / "there" / "comparison.png"
    assert file.stat().st_size > 5_000


def test_plot_finds_what_places_trials_below_learn_and_evaluate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_agent(Path("results/learn/place"))
    write_comparison(Path("results/evaluate/place"), FOUND, "rota evaluate --agent place")
    parser = argparse.ArgumentParser()
    plot.add_parser(parser.add_subparsers(dest="command"))
    assert plot.run(parser.parse_args(["plot"])) == 0
    assert capsys.readouterr().out.split() == [
        "plots/learn/place/learning.png",
        "plots/learn/place/comparison.png",
        "plots/evaluate/place/comparison.png",
    ]
