"""The figure of whether adapting pays: its numbers, and that it can be drawn."""

import io
from itertools import product

import pytest

from rota.core.errors import InputError
from rota.figures.page import save
from rota.figures.trees import adaptation_figure, panels
from rota.recordings.folder import Provenance
from rota.recordings.tree import EpochPoint, Tree

ORIGIN = Provenance("cpu", {"torch": "2"}, "", 0, "rota record a.toml", "2026-01-02T03:04:05+00:00", "0.1.0")


def tree(model="net", scenario="early", seed=0, start_s=10.0, without=(), data="digits"):
    prefixes = [p for n in range(3) for p in product((0, 1), repeat=n) if p not in without]
    curves = {p: (EpochPoint(1, 20.0, 1, 1.0, 0.75 - 0.125 * sum(p) + 0.01 * seed),) for p in prefixes}
    return Tree(model, data, scenario, seed, 40.0, start_s, 2, ("deepen 0", "nothing"), curves, ORIGIN)


def test_a_panel_per_model_and_a_column_per_tree():
    found = panels([tree("b"), tree(scenario="late", start_s=30.0), tree(), tree(seed=1)])
    assert [panel.model for panel in found] == ["b", "net"]
    labels = [column.label for column in found[1].columns]
    assert labels == ["early\nfrom 25% on", "early\nfrom 25% on\nseed 1", "late\nfrom 75% on"]
    assert found[0].columns[0].noise is None
    early, _, late = found[1].columns
    assert early.noise.whole == pytest.approx(0.01 / 2**0.5)
    assert late.noise is None  # only what was measured is drawn
    assert found[1].columns[0].gain.never == 0.5


def test_the_same_model_on_other_data_is_another_panel():
    found = panels([tree(), tree(data="mnist"), tree("b", data="mnist")])
    assert [panel.model for panel in found] == ["b", "net-digits", "net-mnist"]
    assert [len(panel.columns) for panel in found] == [1, 1, 1]


def test_an_unfinished_tree_is_left_out_and_none_at_all_is_an_error():
    with pytest.raises(InputError, match="no complete tree"):
        adaptation_figure([tree(without=[(1, 1)])], "rota recordings adaptation")


def test_it_can_be_drawn_and_says_how():
    figure = adaptation_figure([tree(), tree(seed=1)], "rota recordings adaptation x")
    stream = io.BytesIO()
    save(figure, stream, dots_per_in=40)
    assert stream.getvalue().startswith(b"\x89PNG")
    texts = [text.get_text() for text in figure.texts]
    assert any("rota recordings adaptation x" in text for text in texts)
    assert figure.axes[0].get_title(loc="left") == "net: adapting is better on average in 2 of 2 trees"
