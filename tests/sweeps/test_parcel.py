"""The one pickle that is ever loaded is loaded only if it is the one that was written."""

import os
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from rota.sweeps.parcel import NotOurs, Parcel, read, write


@pytest.fixture
def file(tmp_path):
    return tmp_path / "train.pickle"


class Trap:
    """Whoever loads it makes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def test_a_nested_function_comes_back_with_what_it_saw(file):
    factor = 3

    def train(cfg):
        return cfg["x"] * factor

    digest = write(file, Parcel(train, [Path]))
    found = read(file, digest)
    assert found.train({"x": 2}) == 6
    assert found.things == [Path]
    assert file.stat().st_mode & 0o777 == 0o600


def module_level(cfg):
    return MODULE_VALUE + cfg["x"]


MODULE_VALUE = 40


@pytest.mark.parametrize("train", [module_level, partial(partial(module_level))])
def test_a_function_of_a_module_that_cannot_be_imported_elsewhere_travels_whole(file, train):
    digest = write(file, Parcel(train, []))
    code = "import sys, pathlib; from rota.sweeps.parcel import read\n"
    code += "print(read(pathlib.Path(sys.argv[1]), sys.argv[2]).train({'x': 2}))"
    command = [sys.executable, "-P", "-c", code, str(file), digest]
    assert subprocess.check_output(command, text=True) == "42\n"


def test_another_content_is_not_loaded(file, tmp_path):
    digest = write(file, Parcel(print, []))
    with file.open("wb") as opened:
        opened.write(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(NotOurs, match="not what the sweep wrote"):
        read(file, digest)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("mode", [0o640, 0o602, 0o644])
def test_a_file_that_others_can_open_is_not_loaded(file, mode):
    digest = write(file, Parcel(print, []))
    file.chmod(mode)
    with pytest.raises(NotOurs, match="open to other users"):
        read(file, digest)


def test_a_file_of_another_user_is_not_loaded(file):
    digest = write(file, Parcel(print, []))
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(file, 65534, 65534)
    with pytest.raises(NotOurs, match="belongs to user 65534"):
        read(file, digest)


def test_a_link_is_not_followed(file):
    digest = write(file, Parcel(print, []))
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))
    with pytest.raises(NotOurs, match="cannot be read"):
        read(file, digest)


def test_a_file_that_is_there_is_replaced_not_written_into(file):
    write(file, Parcel(print, []))
    before = file.stat().st_ino
    digest = write(file, Parcel(len, []))
    assert file.stat().st_ino != before
    assert read(file, digest).train is len
