"""The figure of when growing pays: its numbers, and that it can be drawn."""

import io

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.figures.growth import growth_figure, growth_panels
from rota.figures.page import save
from rota.recordings.folder import Provenance
from rota.recordings.growth import GrowthChoices, GrowthNode, GrowthTree

ORIGIN = Provenance("cpu", {"torch": "2"}, "", 0, "rota record a.toml", "2026-01-02T03:04:05+00:00", "0.1.0")
CHOICES = GrowthChoices(2, ("deepen 0", "nothing"), 1)
ENDS = {(0, 1): 0.75, (1, 0): 0.5, (1, 1): 0.25}


def tree(model="net", seed=0, without=()):
    nodes = {prefix: GrowthNode(10, -1, 1.0, 0.1) for prefix in [(), (0,), (1,)]}
    nodes |= {prefix: GrowthNode(20, -1, 1.0, end - 0.05 * seed * prefix[0]) for prefix, end in ENDS.items()}
    kept = {prefix: node for prefix, node in nodes.items() if prefix not in without}
    return GrowthTree(model, "digits", seed, {"lr": 0.1}, CHOICES, kept, (), ORIGIN)


def test_a_panel_per_network_and_a_line_per_number_of_changes():
    one, two = growth_panels([tree(), tree(seed=1), tree("b"), tree("c", without=[(1, 1)])])
    assert (one.title, two.title) == ("net on digits: 2 trees", "b on digits: 1 tree")
    (line,) = one.lines
    assert (line.changes, line.first) == (1, [1, 2])
    assert line.mean == pytest.approx([0.525, 0.25])  # 0.5 and 0.55; 0.25 twice
    assert line.high[0] - line.mean[0] == pytest.approx(2 * 0.05 / 2**0.5 / 2**0.5)
    assert one.deviation == pytest.approx(0.05 / 2**0.5)
    assert np.isnan([two.deviation, *two.lines[0].low]).all()  # one tree says nothing about noise


def test_it_can_be_drawn_and_says_how():
    figure = growth_figure([tree(), tree(seed=1), *map(tree, "abcd")], "rota recordings growth x")
    stream = io.BytesIO()
    save(figure, stream, dots_per_in=40)
    assert stream.getvalue().startswith(b"\x89PNG")
    assert any("rota recordings growth x" in text.get_text() for text in figure.texts)
    assert len(figure.axes) == 5


def test_without_a_complete_tree_there_is_nothing_to_draw():
    with pytest.raises(InputError, match="no complete growth tree to draw; record one first"):
        growth_figure([tree(without=[()])], "")
