"""Trees: what they say, and that they read back exactly."""

import hashlib
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.errors import InputError
from rota.recordings.folder import Provenance
from rota.recordings.tree import EpochPoint, Tree, folder_name, read_tree, write_tree

EVERY = ((0, 0), (0, 1), (1, 0), (1, 1))


def test_what_a_tree_says_of_its_sequences(make_tree):
    tree = make_tree()
    assert tree.all_sequences == tree.sequences() == EVERY
    assert tree.never == (1, 1)
    assert tree.left_s((0, 1)) == (30.0, 25.0)
    assert tree.left_s((0,)) == (30.0,)
    assert tree.accuracy((0, 1)) == 0.5
    assert tree.accuracies() == {(0, 0): 0.75, (0, 1): 0.5, (1, 0): 0.5, (1, 1): 0.25}
    assert tree.missing() == ()
    assert folder_name(tree) == "ConvNet2-early-seed3"


def test_equal_accuracies_share_a_rank_and_a_failure_is_last(make_tree):
    tree = make_tree()
    assert tree.ranks == {(0, 0): 1, (0, 1): 2, (1, 0): 2, (1, 1): 4}
    failed = {**tree.curves, (0, 0): (EpochPoint(4, 20.0, 40, math.nan, math.nan),)}
    assert replace(tree, curves=failed).ranks == {(0, 1): 1, (1, 0): 1, (1, 1): 3, (0, 0): 4}


def test_what_is_missing_is_told_and_the_rest_still_works(make_tree):
    whole = make_tree()
    tree = replace(whole, curves={p: c for p, c in whole.curves.items() if p not in {(1,), (0, 1)}})
    assert tree.missing() == ((1,), (0, 1))
    assert tree.sequences() == ((0, 0),)
    assert tree.ranks == {(0, 0): 1}
    with pytest.raises(InputError, match="tree ConvNet2 early: 0-1 was not recorded; record it first"):
        tree.accuracy((0, 1))
    with pytest.raises(InputError, match="1 was not recorded"):
        tree.left_s((1, 0))
    nothing = replace(whole, curves={})
    assert len(nothing.missing()) == 7
    with pytest.raises(InputError, match="the start was not recorded"):
        nothing.left_s((1, 0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actions": ("deepen a", "deepen b")}, "among them 'nothing'"),
        ({"actions": ("nothing", "nothing")}, "expected distinct ones"),
        ({"decisions": 0}, "expected one or more that begin within the budget"),
        ({"start_s": 41.0}, "10.0 s|41.0 s of 40.0 s"),
        ({"budget_s": math.inf}, "begin within the budget"),
        ({"curves": {(0, 0, 0): (EpochPoint(1, 1.0, 1, 1.0, 1.0),)}}, r"\(0, 0, 0\) is not the beginning"),
        ({"curves": {(2,): (EpochPoint(1, 1.0, 1, 1.0, 1.0),)}}, r"\(2,\) is not the beginning"),
        ({"curves": {(): ()}}, "expected one or more points in the order of time"),
        (
            {"curves": {(): (EpochPoint(1, 2.0, 1, 1, 1), EpochPoint(2, 1.0, 2, 1, 1))}},
            "in the order of time",
        ),
        ({"curves": {(): (EpochPoint(1, math.nan, 1, 1, 1),)}}, "times, epochs and steps of 0 or more"),
        ({"curves": {(): (EpochPoint(1, 1.0, -1, 1, 1),)}}, "times, epochs and steps of 0 or more"),
    ],
)
def test_a_tree_that_cannot_be(make_tree, changes, message):
    with pytest.raises(InputError, match=message):
        make_tree(**changes)


def test_the_file_is_plain(make_tree, tmp_path):
    write_tree(tmp_path, make_tree())
    lines = (tmp_path / "points.csv").read_text().splitlines()
    assert lines[0] == "sequence,epoch,at_s,steps,loss,accuracy,test_accuracy"
    assert lines[1] == ",1,4.0,10,2.0,0.1,"
    assert lines[-1] == "1-1,4,40.0,90,0.5,0.25,0.5"


def test_a_tree_that_grew_replaces_the_smaller_one(make_tree, tmp_path):
    whole = make_tree()
    write_tree(tmp_path, replace(whole, curves={(): whole.curves[()]}))
    assert len(read_tree(tmp_path).missing()) == 6
    write_tree(tmp_path, whole)
    assert read_tree(tmp_path).missing() == ()


@pytest.mark.parametrize("text", ["0-x", "0--1", "-1"])
def test_a_sequence_that_is_none_is_reported_with_its_line(make_tree, tmp_path, text):
    write_tree(tmp_path, make_tree())
    path = tmp_path / "points.csv"
    path.write_text(path.read_text().replace("0-1,", f"{text},"))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    facts = tmp_path / "recording.json"
    old = facts.read_text()
    facts.write_text(old.replace(old.split('"sha256": "')[1][:64], digest))
    with pytest.raises(InputError, match=rf"points.csv: line 7: sequence: '{text}' is not whole numbers"):
        read_tree(tmp_path)


def test_facts_of_something_else(make_tree, tmp_path):
    write_tree(tmp_path, make_tree())
    facts = tmp_path / "recording.json"
    facts.write_text(facts.read_text().replace('"budget_s"', '"budget"'))
    with pytest.raises(InputError, match=r"recording.json: unknown key 'budget'. Did you mean 'budget_s'\?"):
        read_tree(tmp_path)


numbers = st.floats(allow_nan=True, allow_infinity=True)
times_s = st.floats(min_value=0.0, max_value=1e6)
counts = st.integers(min_value=0, max_value=2**40)
points = st.lists(
    st.builds(EpochPoint, counts, times_s, counts, numbers, numbers, numbers), min_size=1, max_size=3
)
prefixes = st.lists(st.integers(min_value=0, max_value=2), max_size=3).map(tuple)


@given(found=st.dictionaries(prefixes, points, max_size=6), seed=st.integers(0, 2**63 - 1))
def test_what_is_written_reads_back_exactly(found, seed):
    ordered = {p: tuple(sorted(each, key=lambda point: point.at_s)) for p, each in found.items()}
    origin = Provenance("cpu", {}, "", seed, "", "2026-01-02T03:04:05+00:00", "0.1.0")
    actions = ("nothing", "é", "widen 1, then 2")
    tree = Tree("m", "d", "s", seed, 1e6 / 3, 0.1, 3, actions, ordered, origin, {"a": [1, None, "ü"]})
    with tempfile.TemporaryDirectory() as folder:
        write_tree(Path(folder), tree)
        assert repr(read_tree(Path(folder))) == repr(tree)  # NaN is unequal to itself, but not its repr


@pytest.mark.parametrize("model", ["../elsewhere", "a/b", ".hidden"])
def test_a_model_whose_name_cannot_be_that_of_a_folder_is_refused(make_tree, model):
    with pytest.raises(InputError, match="cannot be the name of a folder"):
        folder_name(replace(make_tree(), model=model))
