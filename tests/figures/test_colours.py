"""Colours stay what they are, and colour-blind readers can tell them apart."""

from itertools import combinations

import numpy as np
import pytest

from rota.figures.page import (
    ALLOCATIONS,
    MODELS,
    OTHER_MODELS,
    SCHEDULERS,
    allocation_colour,
    model_colours,
    scheduler_colour,
)

# Linear RGB as seen with each kind of colour vision (Machado, Oliveira and Fernandes, 2009).
VISIONS = {
    "usual": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour):
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(colour, vision):
    """CIE L*a*b*, where equal distances look about equally different."""
    xyz = TO_XYZ @ np.clip(np.array(VISIONS[vision]) @ linear(colour), 0, 1) / [0.9505, 1.0, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("names", [SCHEDULERS, ALLOCATIONS], ids=["schedulers", "allocations"])
@pytest.mark.parametrize("vision", VISIONS)
def test_any_two_look_different(vision, names):
    for one, other in combinations(names.values(), 2):
        assert np.linalg.norm(lab(one, vision) - lab(other, vision)) > 15, (one, other)


def test_everyone_stands_out_from_white_paper():
    for colour in (*SCHEDULERS.values(), *ALLOCATIONS.values()):
        assert 1.05 / (TO_XYZ[1] @ linear(colour) + 0.05) > 1.8


def test_text_can_be_read_on_the_colours_of_models():
    for colour in (*MODELS, OTHER_MODELS):
        assert (TO_XYZ[1] @ linear(colour) + 0.05) / 0.05 > 7


def test_a_scheduler_that_is_not_listed_keeps_its_colour():
    assert scheduler_colour("mine") == scheduler_colour("mine") == "#30a668"
    assert scheduler_colour("mine") != scheduler_colour("yours")


def test_an_allocation_has_its_own_colour_listed_or_not():
    assert {name: allocation_colour(name) for name in ALLOCATIONS} == ALLOCATIONS
    assert allocation_colour("mine") == "#30a668"


def test_models_beyond_the_palette_share_a_colour():
    colours = model_colours([f"m{i}" for i in range(len(MODELS) + 2)])
    assert list(colours.values()) == [*MODELS, OTHER_MODELS, OTHER_MODELS]
