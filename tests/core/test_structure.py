"""The structure of a network: equal where networks are, through JSON and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.errors import InputError
from rota.core.network import Layer, Structure

CONV = Layer("conv2d", (("in", 3), ("out", 8), ("kernel", 3)))
RELU = Layer("relu")
CHAIN = Structure((CONV, RELU), ((0, 1),))

LAYERS = st.builds(
    Layer,
    st.sampled_from(["conv2d", "linear", "relu"]),
    st.lists(st.tuples(st.sampled_from(["in", "out"]), st.integers(0, 4096)), max_size=2).map(tuple),
)


@st.composite
def structures(draw: st.DrawFn) -> Structure:
    layers = draw(st.lists(LAYERS, min_size=1, max_size=5))
    pairs = [(tail, head) for head in range(len(layers)) for tail in range(head)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return Structure(tuple(layers), tuple(edges))


@given(structures())
def test_a_structure_goes_to_json_and_back(structure):
    back = Structure.from_json(structure.as_json())
    assert back == structure
    assert back.fingerprint == structure.fingerprint


@given(structures(), structures())
def test_fingerprints_are_equal_where_structures_are(one, other):
    assert (one.fingerprint == other.fingerprint) == (one == other)


def test_the_fingerprint_does_not_change_between_versions():
    assert CHAIN.fingerprint == "174c8ce8050aabf9"
    assert len(CHAIN.fingerprint) == 16


def test_a_layer_tells_its_sizes():
    assert CONV.size("out") == 8
    assert CONV.size("stride", 1) == 1
    assert str(CONV) == "conv2d(in 3, out 8, kernel 3)"
    assert str(RELU) == "relu"


@pytest.mark.parametrize(
    "values",
    [
        None,
        {},
        {"layers": [["conv2d"]], "edges": []},
        {"layers": [[3, []]], "edges": []},
        {"layers": [["conv2d", [["in", 3.5]]]], "edges": []},
        {"layers": [["relu", []], ["relu", []]], "edges": [[0, True]]},
    ],
)
def test_what_is_not_a_structure_is_refused(values):
    with pytest.raises(InputError, match=r"structure: not written by rota .*record it again"):
        Structure.from_json(values)


@pytest.mark.parametrize("edge", [(0, 2), (1, 0), (1, 1), (-1, 1)])
def test_edges_go_from_a_layer_to_a_later_one(edge):
    with pytest.raises(InputError, match="not from a layer to a later one"):
        Structure((CONV, RELU), (edge,))
