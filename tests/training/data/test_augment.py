"""Crops by hand, and against a plain loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rota.training.data.images import Crops, Stream, TakenExamples

IMAGE = np.array([[[1, 2, 3], [4, 5, 6], [7, 8, 9]]], dtype=np.uint8)


def crop(down: int, right: int, *, mirrored: bool, mirror: bool = True) -> list[list[int]]:
    taken = TakenExamples(np.array([0]), np.array([[down], [right]]), np.array([mirrored]))
    return Crops(IMAGE[None], margin=1, mirror=mirror).take(taken)[0, 0].tolist()


def test_in_the_middle_an_image_stays_as_it_is():
    assert crop(1, 1, mirrored=False) == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


def test_a_moved_image_leaves_black_behind():
    assert crop(0, 0, mirrored=False) == [[0, 0, 0], [0, 1, 2], [0, 4, 5]]
    assert crop(2, 1, mirrored=False) == [[4, 5, 6], [7, 8, 9], [0, 0, 0]]


def test_a_mirrored_image_has_left_and_right_exchanged():
    assert crop(1, 1, mirrored=True) == [[3, 2, 1], [6, 5, 4], [9, 8, 7]]
    assert crop(1, 2, mirrored=True) == [[0, 3, 2], [0, 6, 5], [0, 9, 8]]


def test_what_means_something_else_in_a_mirror_is_not_mirrored():
    assert crop(1, 1, mirrored=True, mirror=False) == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


@given(st.integers(0, 99), st.integers(1, 30), st.integers(1, 3))
def test_all_crops_at_once_are_what_one_at_a_time_would_be(position, size, margin):
    images = np.random.default_rng(0).integers(0, 256, (12, 3, 6, 6), dtype=np.uint8)
    taken = Stream(12, seed=1, margin=margin).take(position, size)
    found = Crops(images, margin=margin, mirror=True).take(taken)
    for index, crop in enumerate(found):
        larger = np.zeros((3, 6 + 2 * margin, 6 + 2 * margin), dtype=np.uint8)
        larger[:, margin : margin + 6, margin : margin + 6] = images[taken.order[index]]
        down, right = taken.shifts[:, index]
        expected = larger[:, down : down + 6, right : right + 6]
        np.testing.assert_array_equal(crop, expected[:, :, ::-1] if taken.mirrored[index] else expected)
