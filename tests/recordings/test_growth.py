"""Growth trees: which nodes there are, what they say, and that they read back exactly."""

import hashlib
import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.errors import InputError
from rota.core.network import Layer, Structure
from rota.recordings.folder import Provenance
from rota.recordings.growth import (
    GrowthChoices,
    GrowthNode,
    GrowthTree,
    RecordedStructure,
    of_adaptation,
    read_growth_tree,
    write_growth_tree,
)
from rota.recordings.library import read_library
from rota.recordings.tree import write_tree

IN_ORDER = GrowthChoices(2, ("deepen 1", "deepen 0", "nothing"), 1, ("deepen 0",))
"""One growth at one of two boundaries: (), (1), (2), (1, 2), (2, 1), (2, 2)."""
CHAIN = Structure((Layer("linear", (("in", 4), ("out", 2))), Layer("relu")), ((0, 1),))
GROWN = Structure((*CHAIN.layers, Layer("linear", (("in", 2), ("out", 2)))), ((0, 1), (0, 2), (1, 2)))
STRUCTURES = (RecordedStructure(CHAIN, ((0, 1),), 0.5), RecordedStructure(GROWN, ((0, 1, 2),), 0.75))
NODES = {
    (): GrowthNode(10, 0, 2.0, 0.1, 0.15),
    (1,): GrowthNode(20, 1, 1.0, 0.3, 0.25),
    (2,): GrowthNode(20, 0, 1.5, 0.2, 0.2),
    (1, 2): GrowthNode(30, 1, 0.5, 0.6, 0.55),
    (2, 1): GrowthNode(30, 1, math.nan, math.nan),
    (2, 2): GrowthNode(30, 0, 0.75, 0.4, 0.45),
}


@pytest.fixture
def tree(origin) -> GrowthTree:
    """A whole tree whose last but one path failed."""
    return GrowthTree("net", "digits", 3, {"lr": 0.01}, IN_ORDER, NODES, STRUCTURES, origin, {"asked": {}})


def test_the_nodes_are_those_that_the_limit_and_the_order_allow():
    assert list(IN_ORDER.prefixes()) == list(NODES)
    assert IN_ORDER.nodes == 6
    assert IN_ORDER.allowed(()) == (1, 2)
    assert IN_ORDER.allowed((1,)) == (2,)  # a second growth is one too many
    assert IN_ORDER.allowed((2, 2)) == ()


@pytest.mark.parametrize(
    ("choices", "nodes", "ends"),
    [
        # at depth d there are C(d, 0) + … + C(d, 3) nodes: 1 2 4 8 15 26 42
        (GrowthChoices(6, ("a", "b", "c", "nothing"), 3, ("a", "b", "c")), 98, 42),
        # at depth d there are 1 + 3 d + 9 C(d, 2) nodes: 1 4 16 37 67 106 154
        (GrowthChoices(6, ("a", "b", "c", "nothing"), 2), 385, 154),
        (GrowthChoices(3, ("a", "b", "c", "nothing"), 3), 1 + 4 + 16 + 64, 64),
        (GrowthChoices(4, ("a", "nothing"), 0), 5, 1),
    ],
)
def test_how_many_nodes_there_are(choices, nodes, ends):
    prefixes = list(choices.prefixes())
    assert choices.nodes == len(prefixes) == len(set(prefixes)) == nodes
    assert sum(len(prefix) == choices.decisions for prefix in prefixes) == ends
    for prefix in prefixes:
        choices.check(prefix)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actions": ("deepen 0",), "order": ()}, "among them 'nothing'"),
        ({"actions": ("nothing", "nothing"), "order": ()}, "expected distinct ones"),
        ({"decisions": 0}, "expected 1 to 30 boundaries"),
        ({"decisions": 2**62}, "expected 1 to 30 boundaries"),
        ({"most_changes": 3}, "no more changes than those"),
        ({"most_changes": -1}, "no more changes than those"),
        ({"order": ("deepen 7",)}, "'deepen 7' is not one of the changes"),
        ({"order": ("nothing",)}, "'nothing' is not one of the changes"),
        ({"most_changes": 2}, "has 1 changes; expected one for each of the 2"),
        ({"decisions": 30, "most_changes": 30, "order": ()}, "expected at most 2,000,000"),
    ],
)
def test_choices_that_cannot_be(changes, message):
    with pytest.raises(InputError, match=message):
        replace(IN_ORDER, **changes)


def test_what_a_tree_says(tree):
    assert tree.name == "growth tree net on digits, lr=0.01, seed 3"
    assert tree.missing() == ()
    assert tree.leaves() == ((1, 2), (2, 1), (2, 2))
    assert tree.never == (2, 2)
    assert tree.steps(()) == tree.steps((1,)) == 10
    assert tree.seconds((2,)) == 10 * 0.5
    assert tree.seconds((2, 1)) == 10 * 0.75
    timed = replace(tree, nodes={**NODES, (2,): NODES[2,]._replace(seconds=4.0)})
    assert timed.seconds((2,)) == 4.0


def test_a_tree_as_arrays(tree):
    table = tree.table()
    assert table.prefixes == tuple(NODES)
    assert table.parent.tolist() == [-1, 0, 0, 1, 2, 2]
    assert table.child.tolist() == [[-1, 1, 2], [-1, -1, 3], [-1, 4, 5], *[[-1, -1, -1]] * 3]
    assert table.steps.tolist() == [10] * 6
    assert table.seconds.tolist() == [5.0, 7.5, 5.0, 7.5, 7.5, 5.0]
    assert table.structure.tolist() == [0, 1, 0, 1, 1, 0]
    np.testing.assert_array_equal(table.accuracy, [0.1, 0.3, 0.2, 0.6, math.nan, 0.4])
    np.testing.assert_array_equal(table.test_accuracy, [0.15, 0.25, 0.2, 0.55, math.nan, 0.45])
    np.testing.assert_array_equal(table.loss, [2.0, 1.0, 1.5, 0.5, math.nan, 0.75])


def test_missing_nodes_are_named(tree):
    some = replace(tree, nodes={p: node for p, node in NODES.items() if p not in {(1,), (2, 1)}})
    assert some.missing() == ((1,), (2, 1))
    name = "growth tree net on digits, lr=0.01, seed 3: "
    with pytest.raises(InputError, match=f"^{name}2 of 6 nodes are missing \\(1, 2-1\\); record them first"):
        some.table()
    with pytest.raises(InputError, match=f"^{name}1 was not recorded; record it first$"):
        some.steps((1, 2))
    with pytest.raises(InputError, match="the root was not recorded"):
        replace(tree, nodes={}).node(())


@pytest.mark.parametrize(
    ("prefix", "node", "message"),
    [
        ((0,), NODES[()], "0: is not a node of a tree of these choices"),
        ((1, 1), NODES[()], "1-1: is not a node"),
        ((2, 2, 2), NODES[()], "2-2-2: is not a node"),
        ((2,), NODES[()]._replace(structure=2), "2: 10 steps, structure 2: expected .* one of the 2"),
        ((2,), NODES[()]._replace(steps=-1), "-1 steps"),
        ((2,), NODES[()]._replace(accuracy=math.inf), "2: expected accuracies up to 1e.09"),
        ((2,), NODES[()]._replace(test_accuracy=-2e9), "2: expected accuracies up to 1e.09"),
        ((2, 2), NODES[2, 2]._replace(steps=19), "2-2: ends before the interval before it"),
    ],
)
def test_nodes_that_cannot_be(tree, prefix, node, message):
    with pytest.raises(InputError, match=f"^growth tree net on digits.*{message}"):
        replace(tree, nodes={**NODES, prefix: node})


def test_steps_take_no_less_than_no_time(tree):
    wrong = replace(STRUCTURES[0], step_s=-1.0)
    with pytest.raises(InputError, match="expected seconds per step of 0 or more"):
        replace(tree, structures=(wrong, STRUCTURES[1]))


def test_the_files_are_plain(tree, tmp_path):
    write_growth_tree(tmp_path, tree)
    lines = (tmp_path / "nodes.csv").read_text().splitlines()
    assert lines[0] == "sequence,steps,structure,seconds,loss,accuracy,test_accuracy"
    assert lines[1] == ",10,0,,2.0,0.1,0.15"
    assert lines[5] == "2-1,30,1,,,,"
    layers = (tmp_path / "structures.csv").read_text().splitlines()
    assert layers[0] == "structure,layer,kind,sizes,after,blocks"
    assert layers[1] == "0,0,linear,in=4 out=2,,0"
    assert layers[5] == "1,2,linear,in=2 out=2,0 1,0"


def rewrite(folder: Path, name: str, old: str, new: str) -> None:
    """Change a file, and its checksum with it."""
    facts, path = folder / "recording.json", folder / name
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    found = json.loads(facts.read_text())
    found["files"][name]["rows"] = len(path.read_text().splitlines()) - 1
    text = json.dumps(found).replace(before, hashlib.sha256(path.read_bytes()).hexdigest())
    facts.write_text(text)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("nodes.csv", "\n1,20", "\nx,20", "nodes.csv: line 3: sequence: 'x' is not whole numbers joined"),
        ("nodes.csv", "\n1,20", "\n2,20", "nodes.csv: line 4: sequence: '2' is not a new one"),
        ("nodes.csv", "\n1,20,1", "\n1,20,5", "1: 20 steps, structure 5"),
        ("nodes.csv", "\n1,20", "\n0,20", "0: is not a node of a tree of these choices"),
        ("structures.csv", "0,0,linear", "7,0,linear", "structure: '7' is not one of the 2 structures"),
        ("structures.csv", "0,1,relu", "0,4,relu", "layer: '4' is not the next layer of the structure, 1"),
        ("structures.csv", "in=4", "in4", "sizes: 'in4 out=2' is not names and whole numbers"),
        ("structures.csv", "1,2,linear,in=2 out=2,0 1,0", "1,2,linear,in=2 out=2,0 1,3", "some of the 1 b"),
        ("structures.csv", "0 1,0", "0 2,0", r"edge \(2, 2\): not from a layer to a later one"),
        ("structures.csv", "0 1,0", "0;1,0", "after: '0;1' is not whole numbers with blanks"),
    ],
)
def test_damage_is_named(tree, tmp_path, name, old, new, message):
    write_growth_tree(tmp_path, tree)
    rewrite(tmp_path, name, old, new)
    with pytest.raises(InputError, match=message):
        read_growth_tree(tmp_path)


def test_a_changed_file_is_damaged_and_the_library_says_so(tree, tmp_path):
    write_growth_tree(tmp_path / "good", tree)
    write_growth_tree(tmp_path / "bad", tree)
    (tmp_path / "bad" / "nodes.csv").write_text("sequence\n")
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "nodes.csv").touch()
    library = read_library(tmp_path)
    assert [held.name for held in library.growth] == ["good"]
    assert [problem.split(": ")[0] for problem in library.problems] == [
        f"{tmp_path / 'bad' / 'nodes.csv'}",
        f"{tmp_path / 'begun'}",
    ]


def test_an_adaptation_tree_is_one_without_a_limit(make_tree, tmp_path):
    write_tree(tmp_path, make_tree())
    tree = read_growth_tree(tmp_path)
    assert repr(tree) == repr(of_adaptation(make_tree()))
    assert tree.choices == GrowthChoices(2, ("deepen a", "nothing"), 2)
    assert tree.missing() == ()
    table = tree.table()
    assert table.prefixes == ((), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1))
    assert table.steps.tolist() == [25, 10, 10, 55, 55, 55, 55]
    assert table.seconds.tolist() == [10.0, 5.0, 5.0, 25.0, 25.0, 25.0, 25.0]
    assert table.accuracy.tolist() == [0.2, 0.3, 0.3, 0.75, 0.5, 0.5, 0.25]
    assert table.structure.tolist() == [-1] * 7
    assert tree.details["scenario"] == "early"


numbers = st.floats(allow_nan=True, allow_infinity=True)
accuracies = st.floats(-1e9, 1e9) | st.just(math.nan)
structures = st.builds(
    lambda layers, step_s: RecordedStructure(
        Structure(tuple(layers), tuple((at, at + 1) for at in range(len(layers) - 1))),
        (tuple(range(len(layers))), ()),
        step_s,
    ),
    st.lists(
        st.builds(Layer, st.sampled_from(["conv2d", "relu"]), st.just((("in", 3), ("k", 0)))), min_size=1
    ),
    st.floats(min_value=0.0, max_value=1e3),
)


@given(data=st.data(), seed=st.integers(0, 2**63 - 1), recorded=st.lists(structures, min_size=1, max_size=3))
def test_what_is_written_reads_back_exactly(data, seed, recorded):
    order = data.draw(st.sampled_from([(), ("widen 0 8", "widen 0 8", "deepen 1")]))
    choices = GrowthChoices(3, ("widen 0 8", "nothing", "deepen 1"), 2, order)
    drawn = data.draw(st.sets(st.sampled_from(list(choices.prefixes()))))
    values = st.tuples(st.integers(-1, len(recorded) - 1), numbers, accuracies, accuracies, numbers)
    nodes = {prefix: GrowthNode(9 * len(prefix), *data.draw(values)) for prefix in drawn}
    origin = Provenance("cpu", {}, "", seed, "", "2026-01-02T03:04:05+00:00", "0.1.0")
    hyper = {"lr": data.draw(st.floats(1e-6, 10.0)), "batch_size": 16.0}
    tree = GrowthTree("m", "", seed, hyper, choices, nodes, tuple(recorded), origin, {"a": [1, None, "ü"]})
    with tempfile.TemporaryDirectory() as folder:
        write_growth_tree(Path(folder), tree)
        assert repr(read_growth_tree(Path(folder))) == repr(
            tree
        )  # NaN is unequal to itself, but not its repr
