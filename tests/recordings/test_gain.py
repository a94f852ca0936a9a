"""Whether adapting pays, by numbers that can be checked by hand."""

import math
from itertools import product

import pytest

from rota.recordings.describe import by_model, gain, noise, table
from rota.recordings.folder import Provenance
from rota.recordings.tree import EpochPoint, Tree

ORIGIN = Provenance("cpu", {}, "", 0, "", "2026-01-02T03:04:05+00:00", "0.1.0")


def tree(*accuracies: float, seed: int = 0, scenario: str = "early", data: str = "digits") -> Tree:
    """Two decisions, `deepen 0` or `nothing`; accuracies of 0-0, 0-1, 1-0, 1-1."""
    ends = dict(zip(product((0, 1), repeat=2), accuracies, strict=True))
    curves = {p: (EpochPoint(0, 10.0 + len(p), 1, 1.0, ends.get(p, 0.5)),) for p in [(), (0,), (1,), *ends]}
    return Tree("net", data, scenario, seed, 40.0, 10.0, 2, ("deepen 0", "nothing"), curves, ORIGIN)


def test_the_sum_of_a_tree():
    found = gain(tree(0.75, 0.5, 0.25, 0.375))
    assert found.never == 0.375
    assert found.mean == 0.5
    assert found.top == 0.75
    assert found.share_above == pytest.approx(2 / 3)
    assert found.best == ("deepen 0", "deepen 0")


def test_never_changing_may_be_best():
    found = gain(tree(0.1, 0.2, 0.3, 0.4))
    assert (found.top, found.share_above, found.best) == (0.4, 0.0, ("nothing", "nothing"))


def test_a_tree_in_which_nothing_can_be_changed_has_nothing_to_gain():
    points = {(): (EpochPoint(0, 10.0, 1, 1.0, 0.5),), (0,): (EpochPoint(1, 40.0, 2, 1.0, 0.75),)}
    only = Tree("net", "digits", "early", 0, 40.0, 10.0, 1, ("nothing",), points, ORIGIN)
    found = gain(only)
    assert (found.never, found.top, found.best) == (0.75, 0.75, ("nothing",))
    line = table([only]).splitlines()[1]
    assert line.split() == ["net", "early", "0", "75.0%", "–", "75.0%", "–", "nothing"]
    assert len(line) == len(table([tree(0.1, 0.2, 0.3, 0.4)]).splitlines()[1].removesuffix(", nothing"))


def test_a_failed_training_counts_as_nothing_learnt():
    assert gain(tree(math.nan, 0.3, 0.3, 0.3)).mean == pytest.approx(0.2)


def test_noise_between_seeds():
    """All differ by 0.02, and two of four by 0.02 more: shift 0.03, ± 0.01 around it."""
    found = noise([tree(0.5, 0.5, 0.5, 0.5), tree(0.48, 0.48, 0.46, 0.46, seed=1)])
    assert found.whole == pytest.approx(math.sqrt((2 * 0.02**2 + 2 * 0.04**2) / 4 / 2))
    assert found.apart == pytest.approx(0.01 / math.sqrt(2))


def test_without_a_second_seed_the_noise_is_unknown():
    assert noise([tree(0.1, 0.2, 0.3, 0.4), tree(0.1, 0.2, 0.3, 0.4, scenario="late")]) is None


def test_the_table_names_what_it_says():
    text = table([tree(0.75, 0.5, 0.25, 0.375), tree(0.75, 0.5, 0.25, 0.375, seed=1)])
    assert "37.5%     50.0%   75.0%           67%          deepen 0, deepen 0" in text
    assert "another seed changes an accuracy by ±0.0%" in text


def test_trees_of_other_data_are_another_model():
    """They are named with it, and what differs between them is not the noise of a seed."""
    trees = [tree(0.5, 0.5, 0.5, 0.25), tree(0.75, 0.5, 0.25, 0.375, seed=1, data="mnist")]
    assert {model: [each.data for each in group] for model, group in by_model(trees).items()} == {
        "net-digits": ["digits"],
        "net-mnist": ["mnist"],
    }
    _, digits, mnist = table(trees).splitlines()
    assert digits.startswith("net-digits early            0   25.0%")
    assert mnist.startswith("net-mnist  early            1   37.5%")
    assert len(table([]).splitlines()) == 1
