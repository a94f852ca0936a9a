"""The figures of how good agents are: their numbers by hand, and that they can be drawn."""

import io
import math

import pytest

from rota.core.errors import InputError
from rota.figures import learned, learned_objective
from rota.figures.learned import EvaluatedTree, agent_groups
from rota.figures.page import save
from rota.learning.outcome import Baselines, Evaluation, EvaluationOutcome, EvaluationRow

CHANCES = ((0.75, 0.25), (0.125, 0.875))


def row(scenario="early", model="net", seed=0, accuracy=0.575, rank=2, seen=True, fixed=0.5, data=""):
    outcome = EvaluationOutcome(
        scenario,
        model,
        seed,
        (0, 1),
        ("deepen 0", "nothing"),
        ("deepen 0", "nothing"),
        accuracy,
        rank,
        4,
        8 * (accuracy - 0.5),
        CHANCES,
        data,
    )
    return EvaluationRow(outcome, Baselines(0.45, 0.5, fixed, (0, 0), 0.625, 0.5), seen)


def evaluation(folder, *rows, seed=0):
    return Evaluation(folder, {"seed": seed}, rows)


def assert_png(figure):
    stream = io.BytesIO()
    save(figure, stream, dots_per_in=40)
    assert stream.getvalue().startswith(b"\x89PNG")


def words(figure):
    return [text.get_text() for text in figure.findobj(lambda each: hasattr(each, "get_text"))]


def test_places_are_in_order_of_time_within_their_model():
    rows = [row("late", "b"), row("early", "b"), row("late", seed=1), row("late"), row("middle")]
    (group,) = agent_groups([evaluation("joint", *rows)])
    assert list(group.rows) == [
        EvaluatedTree("b", "early", 0), EvaluatedTree("b", "late", 0),
        EvaluatedTree("net", "middle", 0), EvaluatedTree("net", "late", 0), EvaluatedTree("net", "late", 1),
    ]  # fmt: skip
    assert [place.label for place in group.of_model("net")] == ["middle", "late", "late\nseed 1"]


def test_the_same_model_on_other_data_is_another_place():
    rows = [row(data="digits"), row(data="mnist"), row(model="b", data="mnist")]
    (group,) = agent_groups([evaluation("joint", *rows)])
    assert group.models == ["net-digits", "net-mnist", "b"]
    assert len(group.rows) == 3


def test_agents_of_several_seeds_are_one_picture():
    (group,) = agent_groups([evaluation("x/joint/seed1", row(), seed=1), evaluation("x/joint/seed0", row())])
    assert (group.name, group.seeds) == ("joint", [0, 1])


def test_what_was_left_out_in_turn_is_one_picture():
    one, other = row("early", seen=False), row("late", seen=False)
    found = [evaluation("x/without-late/seed0", other), evaluation("x/without-early/seed0", one)]
    (group,) = agent_groups(found)
    assert group.name == "x"
    assert [place.scenario for place in group.rows] == ["early", "late"]


def test_different_agents_in_the_same_scenario_are_two_pictures():
    found = agent_groups([evaluation("x/a", row()), evaluation("x/b", row())])
    assert [group.name for group in found] == ["a", "b"]


def test_bars_are_means_over_agents():
    rows = row(accuracy=0.55, rank=3), row(accuracy=0.6, rank=2)
    (panel,) = learned.panels([evaluation(f"a/seed{n}", rows[n], seed=n) for n in (0, 1)])
    (column,) = panel.columns
    assert column.accuracies == pytest.approx(
        {"never": 0.45, "random": 0.5, "best fixed": 0.5, "agent": 0.575, "oracle": 0.625}
    )
    assert (column.least, column.most, column.headroom) == pytest.approx((0.55, 0.6, 0.6))
    assert column.said == "rank 2–3 of 4\nheadroom 0.60"
    assert panel.title == "net: mean headroom 0.60 (2 agents)"


def test_the_axis_begins_at_a_multiple_of_five_percent_below_the_shortest_bar():
    (panel,) = learned.panels([evaluation("a", row())])
    assert learned.limits(panel.columns) == pytest.approx((0.4, 0.625 + 0.2 * 0.225))
    (lower,) = learned.panels([evaluation("a", row(accuracy=0.02))])
    assert learned.limits(lower.columns)[0] == 0.0


def test_where_there_is_no_fixed_sequence_its_bar_is_missing():
    (panel,) = learned.panels([evaluation("a", row(fixed=None))])
    assert math.isnan(panel.columns[0].accuracies["best fixed"])
    assert learned.limits(panel.columns)[0] == pytest.approx(0.4)
    (figure,) = learned.accuracy_figures([evaluation("a", row(fixed=None))], ("figure: x",))
    assert_png(figure)


def test_the_bars_say_rank_and_headroom_and_what_is_unseen():
    (figure,) = learned.accuracy_figures(
        [evaluation("a", row(), row("late", rank=1, seen=False))], ("figure: rota evaluate --agent a",)
    )
    found = words(figure)
    assert {"rank 2 of 4\nheadroom 0.60", "rank 1 of 4\nheadroom 0.60"} <= set(found)
    assert {"early", "late\nunseen", "agent", "agent, where it has not learned"} <= set(found)
    assert {"accuracy (axis from 40%)", "figure: rota evaluate --agent a"} <= set(found)
    assert_png(figure)


def test_many_agents_take_several_pages_rather_than_one_each():
    many = [evaluation(f"x/{name}", row(), row("late")) for name in range(20)]
    assert len(list(learned.accuracy_figures(many, ("",)))) == 3  # eight on each
    assert len(list(learned_objective.probabilities_figures(many, ("",)))) == 2  # ten on each


def test_a_strip_for_each_agent_and_model():
    found = learned_objective.strips(
        [evaluation(f"a/seed{n}", row(), row("late", "other", seen=False), seed=n) for n in (0, 1)]
    )
    assert [strip.title for strip in found] == [
        "net, agent with seed 0", "net, agent with seed 1",
        "other, agent with seed 0", "other, agent with seed 1",
    ]  # fmt: skip
    (cell,) = found[2].cells
    assert (cell.label, cell.chosen, cell.rank) == ("late, unseen", (0, 1), 2)
    assert cell.probabilities.tolist() == [[0.75, 0.25], [0.125, 0.875]]


def test_actions_are_named_in_words_chosen_or_not():
    three = ("deepen 0", "deepen 1", "nothing")
    found = EvaluationOutcome("e", "m", 0, (2, 2), ("nothing",) * 2, three, 0.5, 1, 4, 0.0, CHANCES)
    assert learned_objective.action_names([row(), row()._replace(agent=found)]) == list(three)


def test_probabilities_are_written_and_the_chosen_framed():
    (figure,) = learned_objective.probabilities_figures([evaluation("a", row())], ("figure: x",))
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["75", "12", "25", "88", "net"]
    assert [(round(frame.get_x()), round(frame.get_y())) for frame in axes.patches] == [(0, 0), (1, 1)]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["deepen 0", "nothing"]
    assert_png(figure)


@pytest.mark.parametrize("draw", [learned.accuracy_figures, learned_objective.probabilities_figures])
def test_nothing_evaluated_is_an_error(draw):
    with pytest.raises(InputError, match="nothing was evaluated"):
        list(draw([], ()))
