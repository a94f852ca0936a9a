"""Pixels resized and normalised."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from rota.training.data import images as image_data
from rota.training.data.images import Normal, resized, statistics

CPU = torch.device("cpu")


def bytes_of(*shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(3))


def test_a_pixel_is_the_mean_of_the_area_that_it_covers():
    image = torch.tensor([[[[0, 10, 200, 200], [20, 30, 200, 200], [1, 1, 255, 254], [1, 1, 255, 255]]]])
    # 254.75 is rounded to 255
    assert resized(image.byte(), 2).tolist() == [[[[15, 200], [1, 255]]]]


def test_more_images_than_fit_at_once_are_resized_alike(monkeypatch):
    images = bytes_of(10, 3, 9, 9)
    whole = resized(images, 3)
    monkeypatch.setattr(image_data, "RESIZE_CHUNK", 4)
    assert resized(images, 3).equal(whole)
    assert whole.dtype == torch.uint8


def test_the_size_that_images_have_leaves_them_alone():
    images = bytes_of(2, 1, 5, 5)
    assert resized(images, 5) is images


@given(st.integers(1, 12))
def test_one_shade_is_that_shade_in_every_size(size):
    assert resized(torch.full((1, 1, 6, 6), 77, dtype=torch.uint8), size).equal(
        torch.full((1, 1, size, size), 77, dtype=torch.uint8)
    )


def test_statistics_are_those_of_all_pixels_of_a_channel(monkeypatch):
    monkeypatch.setattr(image_data, "CHUNK", 4)
    images = bytes_of(10, 3, 7, 5)
    mean, deviation = statistics(images)
    torch.testing.assert_close(mean, images.double().mean((0, 2, 3)))
    torch.testing.assert_close(deviation, images.double().std((0, 2, 3), correction=0))


def test_normalised_images_have_mean_0_and_deviation_1_in_every_channel():
    images = bytes_of(20, 3, 8, 8)
    images[:, 1] //= 7
    found = Normal(images, CPU)(images)
    torch.testing.assert_close(found.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(found.std((0, 2, 3), correction=0), torch.ones(3), atol=1e-5, rtol=0)


def test_a_channel_of_one_shade_becomes_0():
    images = torch.full((4, 1, 3, 3), 9, dtype=torch.uint8)
    assert Normal(images, CPU)(images).abs().max() == 0


def test_images_stay_as_they_were():
    images = bytes_of(4, 3, 3, 3)
    before = images.clone()
    Normal(images, CPU)(images)
    assert images.equal(before)
