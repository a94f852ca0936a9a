"""Dotted keys and values on one line."""

from pathlib import Path

import pytest

from rota.config.bind import parse_key, put, show
from rota.core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("seed", ("seed",)),
        ("cluster.nodes", ("cluster", "nodes")),
        ('speeds."a.b"', ("speeds", "a.b")),
        ("failures.0", ("failures", "0")),
    ],
)
def test_a_key_is_split_as_toml_splits_it(text, path):
    assert parse_key(text) == path


@pytest.mark.parametrize("text", ["", ".", "a.", "a b", "a\nb", "a = 1\nb", "[a]"])
def test_what_is_no_key_says_so(text):
    with pytest.raises(ConfigError) as caught:
        parse_key(text)
    assert str(caught.value) == f"{text!r} is not a key; a key looks like cluster.nodes"


def test_putting_leaves_the_original_alone_and_makes_tables_on_the_way():
    table = {"seed": 1, "cluster": {"slots": 4}}
    assert put(table, ("cluster", "net", "speed"), 10) == {
        "seed": 1,
        "cluster": {"slots": 4, "net": {"speed": 10}},
    }
    assert table == {"seed": 1, "cluster": {"slots": 4}}


def test_values_are_shown_as_toml_writes_them():
    value = {"a": True, "b": [1, 2.5, "x"], "c": {"d": Path("e/f")}}
    assert show(value) == "{a = true, b = [1, 2.5, 'x'], c = {d = 'e/f'}}"


def test_a_key_in_a_list_of_tables_is_set_in_each():
    table = {"trees": [{"budget_s": 1, "setup": {}}, {"budget_s": 2}]}
    assert put(table, ("trees", "setup", "model"), "a") == {
        "trees": [{"budget_s": 1, "setup": {"model": "a"}}, {"budget_s": 2, "setup": {"model": "a"}}]
    }


@pytest.mark.parametrize("value", [[], [1, 2], "text", 3])
def test_a_key_below_what_is_not_a_table_is_refused(value):
    with pytest.raises(ConfigError, match="is not a table"):
        put({"trees": value}, ("trees", "budget_s"), 1)
