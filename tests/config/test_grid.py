"""Expanding a grid into named points."""

import re
from copy import deepcopy
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.config.grid import GridPoint, count, expand, short_names
from rota.core.errors import ConfigError


def names(grid: dict) -> list[str]:
    return [point.name for point in expand({"grid": grid})]


def at(nodes: int, seed: int) -> dict:
    return {"seed": seed, "cluster": {"slots": 4, "nodes": nodes}}


def test_a_grid_is_the_product_of_its_axes_in_the_order_written():
    table = {"seed": 9, "cluster": {"slots": 4}, "grid": {"cluster.nodes": [8, 16], "seed": [0, 1]}}
    assert expand(table) == [
        GridPoint("nodes=8,seed=0", at(8, 0), {"cluster.nodes": 8, "seed": 0}),
        GridPoint("nodes=8,seed=1", at(8, 1), {"cluster.nodes": 8, "seed": 1}),
        GridPoint("nodes=16,seed=0", at(16, 0), {"cluster.nodes": 16, "seed": 0}),
        GridPoint("nodes=16,seed=1", at(16, 1), {"cluster.nodes": 16, "seed": 1}),
    ]


def test_without_a_grid_there_is_one_point_with_no_name():
    assert expand({"seed": 1}) == [GridPoint("", {"seed": 1}, {})]


def test_a_grid_is_counted_without_making_its_points():
    assert (
        count({"grid": {"a": list(range(1000)), "b.c": list(range(1000)), "d": list(range(1000))}}) == 10**9
    )
    assert count({"seed": 1}) == 1
    with pytest.raises(ConfigError, match=r"^f.toml: grid: a: the list of values is empty$"):
        count({"grid": {"a": []}}, "f.toml")


def test_short_names_are_the_last_part_unless_two_keys_end_in_it():
    keys = ["a.rate", "b.rate", "c.seed", "load"]
    assert short_names(keys) == {"a.rate": "a.rate", "b.rate": "b.rate", "c.seed": "seed", "load": "load"}


def test_a_quoted_and_a_dotted_key_are_the_same_axis():
    assert expand({"grid": {"cluster": {"nodes": [8]}}}) == expand({"grid": {"cluster.nodes": [8]}})


def test_a_name_is_in_full_only_where_its_end_is_not_enough():
    assert names({"a.rate": [1], "b.rate": [2], "c.seed": [3]}) == ["a.rate=1,b.rate=2,seed=3"]


def test_values_of_every_kind_have_readable_names():
    values = ["srtf", 0.001, -1, True, "a/b c.csv", [1, 2], {"nodes": 8}, "é", ""]
    assert names({"x": values}) == [
        "x=srtf",
        "x=0.001",
        "x=-1",
        "x=true",
        "x=a_b_c.csv",
        "x=1_2",
        "x=nodes=8",
        "x=é",
        "x=",
    ]


def test_values_that_would_read_the_same_are_numbered():
    assert names({"x": [1, "1", "a/b", "a b", "c"]}) == ["x=1#1", "x=1#2", "x=a_b#3", "x=a_b#4", "x=c"]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (3, "3 is not a table of lists"),
        ({}, "is empty; give lists of values, or leave it out"),
        ({"seed": 3}, "seed: 3 is not a list. Did you mean [3]?"),
        ({"cluster": {"nodes": "8"}}, "cluster.nodes: '8' is not a list. Did you mean ['8']?"),
        ({"seed": []}, "seed: the list of values is empty"),
        ({"seed": [1, 2, 1]}, "seed: 1 occurs 2 times"),
        ({"a.b": [1], "a": {"b": [2]}}, "a.b: it already has a list"),
        ({"a.b": [1], "a": [{"c": 1}]}, "a.b: a already varies as a whole"),
        ({"a b": [1]}, "'a b' is not a key; a key looks like cluster.nodes"),
        ({"name.first": [1]}, "'name' is not a table: it is 'x'"),
    ],
)
def test_a_mistake_in_a_grid_is_named_with_its_place(grid, message):
    with pytest.raises(ConfigError) as caught:
        expand({"name": "x", "grid": grid}, "simulate.toml")
    assert str(caught.value) == f"simulate.toml: grid: {message}"


def test_without_a_file_the_place_is_the_grid():
    with pytest.raises(ConfigError, match=r"^grid: 3 is not a table of lists$"):
        expand({"grid": 3})


texts = st.text("a1é-=_,.#/ \n", max_size=6)
scalars = st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
values = st.lists(scalars | st.lists(scalars, max_size=2), min_size=1, max_size=4, unique_by=repr)
keys = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(".".join)
axes = st.dictionaries(keys, values, min_size=1, max_size=3)
grids = axes.filter(lambda grid: not any(a != b and b.startswith(f"{a}.") for a in grid for b in grid))


@given(grids)
def test_a_grid_has_as_many_points_as_its_axes_multiply_to_each_with_its_own_plain_name(grid):
    table = {"grid": grid}
    before = deepcopy(table)
    points = expand(table)
    assert len({point.name for point in points}) == len(points) == prod(map(len, grid.values()))
    assert count(table) == len(points)
    assert all(re.fullmatch(r"[\w.+=#,-]*", point.name) for point in points)
    assert table == before


@given(grids)
def test_each_point_has_the_values_of_its_place_in_the_product(grid):
    points = expand({"grid": grid})
    for axis, values in grid.items():
        found = [repr(value_at(point.table, axis)) for point in points]
        assert all(found.count(repr(value)) == len(points) / len(values) for value in values)
        assert "grid" not in points[0].table


def value_at(table, key):
    for name in key.split("."):
        table = table[name]
    return table
