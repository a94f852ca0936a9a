"""torchvision's folders and download, with its own code and small files in the published formats."""

import gzip
import pickle
import tarfile
from functools import partial
from hashlib import md5
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.training import data
from rota.training.torchvision import torchvision

LAYOUTS = {
    "cifar10": ("CIFAR10", "cifar-10-batches-py", "labels", "label_names"),
    "cifar100": ("CIFAR100", "cifar-100-python", "fine_labels", "fine_label_names"),
}


def write_batch(file, contents) -> tuple[str, str]:
    """What torchvision knows about a file: its name and checksum."""
    file.write_bytes(pickle.dumps(contents))
    return file.name, md5(file.read_bytes()).hexdigest()


@pytest.fixture
def published(originals, small, monkeypatch, tmp_path):
    """Writes a folder of CIFAR and makes its checksums the ones that torchvision asks for."""

    def write(name, root):
        called, folder, labels, names = LAYOUTS[name]
        decoded = small(name)
        place = root / folder
        place.mkdir(parents=True)

        def batch(file, images, targets):
            contents = {"data": images.reshape(len(images), -1), labels: targets.tolist()}
            return write_batch(place / file, contents)

        half = len(decoded.train_images) // 2
        parts = (("one", slice(half)), ("two", slice(half, None)))
        train = [batch(file, decoded.train_images[part], decoded.train_labels[part]) for file, part in parts]
        meta, digest = write_batch(place / "meta", {names: ["thing"]})
        found = getattr(torchvision.datasets, called)
        monkeypatch.setattr(found, "train_list", [list(entry) for entry in train])
        monkeypatch.setattr(
            found, "test_list", [list(batch("test", decoded.test_images, decoded.test_labels))]
        )
        monkeypatch.setattr(found, "meta", {"filename": meta, "key": names, "md5": digest})
        return decoded, place

    return write


def assert_whole(splits, decoded) -> None:
    np.testing.assert_array_equal(splits.test.images, decoded.test_images)
    np.testing.assert_array_equal(splits.test.labels, decoded.test_labels)
    found = {image.tobytes() for part in (splits.train, splits.validation) for image in part.images.numpy()}
    assert found == {image.tobytes() for image in decoded.train_images}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_folder_of_torchvision_reads_pixel_by_pixel(originals, published, name):
    decoded, _ = published(name, originals.root)
    assert_whole(data.load(name), decoded)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_file_with_another_checksum_is_not_even_opened(originals, published, name):
    _, place = published(name, originals.root)
    (place / "two").write_bytes(pickle.dumps({"data": "something else"}))
    with pytest.raises(InputError, match=rf"{place.name}: damaged .*data.sh {name}"):
        data.load(name)


@pytest.fixture
def serve(monkeypatch):
    """Serves a folder over HTTP and gives its address."""
    servers = []

    def start(folder) -> str:
        handler = partial(Quiet, directory=folder)
        servers.append(Server(("127.0.0.1", 0), handler))
        Thread(target=servers[-1].serve_forever, kwargs={"poll_interval": 0.01}).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/"

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


class Server(ThreadingHTTPServer):
    """Does not mind a client that has heard enough."""

    def handle_error(self, *_) -> None:
        pass


class Quiet(SimpleHTTPRequestHandler):
    """Says nothing about requests."""

    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def archive(published, serve, tmp_path, monkeypatch):
    """CIFAR-10 as torchvision would download it, and what is in it."""
    decoded, place = published("cifar10", tmp_path / "server")
    file = tmp_path / "server" / "cifar.tar.gz"
    with tarfile.open(file, "w:gz") as files:
        files.add(place, place.name)
    found = torchvision.datasets.CIFAR10
    monkeypatch.setattr(found, "url", serve(file.parent) + file.name)
    monkeypatch.setattr(found, "filename", file.name)
    monkeypatch.setattr(found, "tgz_md5", md5(file.read_bytes()).hexdigest())
    return file, decoded


def test_nothing_is_downloaded_unless_that_is_asked_for(originals, archive):
    with pytest.raises(InputError, match="cifar10: not here"):
        data.load("cifar10")
    assert not originals.root.exists()
    assert_whole(data.load("cifar10", download=True), archive[1])
    assert (originals.root / "cifar10.npz").is_file()


def test_nothing_is_downloaded_that_is_there(originals, archive):
    file, decoded = archive
    file.unlink()
    originals.package(decoded)
    assert_whole(data.load("cifar10", download=True), decoded)


def test_a_download_that_fails_says_so(originals, archive):
    archive[0].unlink()
    with pytest.raises(InputError, match=r"cifar10: cannot be downloaded into .*404.* see that the network"):
        data.load("cifar10", download=True)


def test_a_download_with_another_checksum_is_refused(originals, archive):
    file, _ = archive
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(InputError, match="cifar10: cannot be downloaded"):
        data.load("cifar10", download=True)
    assert not (originals.root / "cifar-10-batches-py").exists()


def test_fashion_mnist_is_downloaded_as_idx_files(originals, small, serve, tmp_path, monkeypatch):
    decoded = small("fashion-mnist")
    place = originals.idx(decoded, tmp_path / "server")
    resources = [(file.name, md5(file.read_bytes()).hexdigest()) for file in sorted(place.iterdir())]
    monkeypatch.setattr(torchvision.datasets.FashionMNIST, "mirrors", [serve(place)])
    monkeypatch.setattr(torchvision.datasets.FashionMNIST, "resources", resources)
    assert_whole(data.load("fashion-mnist", download=True), decoded)
    raw = originals.root / "FashionMNIST" / "raw"
    assert gzip.decompress((raw / "t10k-labels-idx1-ubyte.gz").read_bytes())[:4] == b"\x00\x00\x08\x01"
