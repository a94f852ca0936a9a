"""Configurations come back from JSON as they were."""

import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from rota.sweeps.parcel import Printed, from_plain, things_of, to_plain


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.1 + 0.2,
        'text with "quotes" and ü',
        [1, [2.5, "x"]],
        (0.9, (0.999, 1)),
        {"a": {"b": [1, (2,)]}},
        {1: "one", (2, 3): "two and three"},
        {"tuple": [1, 2]},
        {"table": [[1, 2]]},
        {"thing": [0, "x"]},
        {"thing": 1, "tuple": 2},
        {},
    ],
)
def test_plain_values_come_back_with_their_types(value):
    found = from_plain(json.loads(json.dumps(to_plain(value))))
    assert found == value
    assert repr(found) == repr(value)


def test_what_json_has_no_form_for_comes_back_from_the_list():
    value = {"path": Path("a"), "make": [math.sin, Path], "n": 1}
    things = things_of(value)
    assert things == [Path("a"), math.sin, Path]
    plain = json.loads(json.dumps(to_plain(value, things)))
    assert from_plain(plain, things) == value


class Betas(NamedTuple):
    first: float
    make: object


class Layers(list):
    pass


@pytest.mark.parametrize("value", [Betas(0.9, math.sin), Layers([64, 32])])
def test_a_tuple_or_list_of_a_kind_of_its_own_comes_back_as_it_was(value):
    cfg = {"x": [value, 1]}
    things = things_of(cfg)
    assert things == [value]
    found = from_plain(json.loads(json.dumps(to_plain(cfg, things))), things)
    assert found == cfg
    assert type(found["x"][0]) is type(value)


def test_without_the_list_it_is_what_was_printed():
    class Something:
        pass

    plain = json.loads(json.dumps(to_plain({"x": Something()})))
    found = from_plain(plain)["x"]
    assert isinstance(found, Printed)
    assert "Something object" in repr(found)
    assert "0x" not in repr(found)
    assert to_plain({"x": found}) == plain


def test_numbers_of_numpy_are_plain_numbers():
    value = {
        "rate": np.float64(0.5),
        "rates": list(np.linspace(0, 1, 3)),
        "n": np.int64(3),
        "on": np.bool_(True),
    }
    assert things_of(value) == []
    assert repr(from_plain(to_plain(value))) == "{'rate': 0.5, 'rates': [0.0, 0.5, 1.0], 'n': 3, 'on': True}"
    assert len(things_of({"table": np.zeros(3)})) == 1


def test_a_thing_is_found_again_in_a_list_that_has_changed():
    plain = to_plain([math.sin, math.cos], [math.cos, math.sin])
    assert from_plain(plain, [math.exp, math.sin, math.cos]) == [math.sin, math.cos]
    assert from_plain(plain, [math.sin]) == [math.sin, Printed("<built-in function cos>")]


def test_of_things_that_look_alike_each_keeps_its_place():
    class Silent:
        def __repr__(self):
            return "silent"

    one, other = Silent(), Silent()
    assert from_plain(to_plain([other, one], [one, other]), [one, other]) == [other, one]
