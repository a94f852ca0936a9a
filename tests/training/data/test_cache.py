"""What a data set was decoded to: read back as it was, or not at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.errors import InputError
from rota.training import data
from rota.training.data.catalogue import CATALOGUE, DataSet, Decoded, read_cache, write_cache

TINY = DataSet("tiny", ("a", "b"), (1, 4, 4), 6, 4)
DAMAGED = "damaged; delete it, and it is made again from the original files"


def tiny() -> Decoded:
    random = np.random.default_rng(1)
    images = random.integers(0, 256, (10, 1, 4, 4), dtype=np.uint8)
    labels = np.arange(10) % 2
    return Decoded(images[:6], labels[:6], images[6:], labels[6:])


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A whole cache."""
    file = tmp_path_factory.mktemp("cache") / "tiny.npz"
    write_cache(file, tiny())
    return file


def test_a_cache_reads_back_as_it_was_written(file):
    found = read_cache(file, TINY)
    for name, array in tiny().arrays().items():
        np.testing.assert_array_equal(getattr(found, name), array)
    assert [part.name for part in file.parent.iterdir()] == ["tiny.npz"]


@given(at=st.integers(min_value=0), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed_or_does_not_matter(file, tmp_path_factory, at, bit):
    content = bytearray(file.read_bytes())
    content[at % len(content)] ^= 1 << bit
    harmed = tmp_path_factory.getbasetemp() / "harmed.npz"
    harmed.write_bytes(content)
    try:
        found = read_cache(harmed, TINY)
    except InputError as error:
        assert str(harmed) in str(error)  # noqa: PT017 - noticing is one of the two good outcomes
    else:
        for name, array in tiny().arrays().items():
            np.testing.assert_array_equal(getattr(found, name), array)


def test_a_flipped_pixel_is_noticed(file, tmp_path):
    content = bytearray(file.read_bytes())
    at = content.index(tiny().train_images.tobytes()) + 5
    content[at] ^= 1
    harmed = tmp_path / "harmed.npz"
    harmed.write_bytes(content)
    with pytest.raises(InputError, match=DAMAGED):
        read_cache(harmed, TINY)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_cache_is_noticed(file, tmp_path, share):
    harmed = tmp_path / "harmed.npz"
    content = file.read_bytes()
    harmed.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InputError, match=DAMAGED):
        read_cache(harmed, TINY)


def test_what_is_no_cache_at_all_is_noticed(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(InputError, match=DAMAGED):
        read_cache(tmp_path / "text.npz", TINY)
    np.savez(tmp_path / "other.npz", weights=np.zeros(3))
    with pytest.raises(InputError, match=DAMAGED):
        read_cache(tmp_path / "other.npz", TINY)
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        read_cache(tmp_path / "folder.npz", TINY)


def test_a_cache_of_another_data_set_is_refused(file):
    with pytest.raises(
        InputError, match="train images are uint8 6×1×4×4, not uint8 60000×1×28×28; delete it"
    ):
        read_cache(file, CATALOGUE["fashion-mnist"])


def test_a_damaged_cache_is_not_replaced_in_silence(originals, small, forget):
    originals.package(small("cifar10"))
    data.load("cifar10")
    cache = originals.root / "cifar10.npz"
    cache.write_bytes(cache.read_bytes()[:-100])
    forget()
    with pytest.raises(InputError, match=rf"cifar10.npz: {DAMAGED}"):
        data.load("cifar10")
    cache.unlink()
    assert len(data.load("cifar10").train) == 36
