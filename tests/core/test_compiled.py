"""The cache of compiled code: another one as soon as any source that matters is another."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rota
from rota.core.compiled import KEPT

PACKAGE = Path(rota.__file__).parent

WHERE = """
from rota.core import compiled
assert compiled.__file__.startswith({checkout!r}), compiled.__file__
print(compiled.cache_folder())
"""


class Checkout:
    """A copy of the package, run in processes of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        self.package = self.folder / "rota"
        self.cache = folder / "cache"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))

    def run(self, code: str, **variables: str) -> str:
        """What a fresh process prints."""
        places = {
            "ROTA_CACHE": str(self.cache),
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(self.folder),
        }
        environment = {**os.environ, **places, **variables}
        return subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).strip()

    def cache_folder(self, **variables: str) -> Path:
        return Path(self.run(WHERE.format(checkout=str(self.folder)), **variables))

    def change(self, name: str, line: str = "\n# Another line.\n") -> None:
        with (self.package / name).open("a") as file:
            file.write(line)


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_the_folder_is_in_the_cache_and_stays_the_same(checkout):
    first = checkout.cache_folder()
    assert first.parent == checkout.cache / "kernels"
    assert first.is_dir()
    checkout.change("commands/simulate.py")  # no kernel in it, and none depends on it
    assert checkout.cache_folder() == first


@pytest.mark.parametrize(
    "name",
    [
        "core/columns.py",
        "core/population/view.py",
        "policies/cluster/antman.py",
    ],
)
def test_another_source_of_a_kernel_is_another_folder(checkout, name):
    first = checkout.cache_folder()
    checkout.change(name)
    second = checkout.cache_folder()
    assert second != first
    assert second.parent == first.parent


def write_tiny(package: Path) -> None:
    (package / "tiny.py").write_text(
        "from rota.core.columns import GPUS\n"
        "from rota.core.compiled import kernel\n\n\n"
        "@kernel\n"
        "def gpus():\n"
        "    return GPUS\n"
    )


ASK = "from rota.tiny import gpus; input(); gpus(); print(sum(gpus.stats.cache_misses.values()))"


def test_a_kernel_notices_a_constant_that_changed_in_another_file(checkout):
    write_tiny(checkout.package)
    ask = "from rota.tiny import gpus; print(gpus())"
    assert checkout.run(ask) == "3"
    assert list(checkout.cache.rglob("tiny.gpus*.nbi"))  # kept for next time
    checkout.change("core/columns.py", "\nGPUS = 1234\n")
    assert checkout.run(ask) == "1234"


def test_a_kernel_is_compiled_once_by_all_processes_in_whichever_folder_the_sources_are(checkout, tmp_path):
    write_tiny(checkout.package)
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(checkout.folder, elsewhere)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ASK],
            env={**os.environ, "ROTA_CACHE": str(checkout.cache), "PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for folder in (checkout.folder, elsewhere)
    ]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    assert sorted(int(process.communicate()[0]) for process in processes) == [0, 1]


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_without_a_cache_that_can_be_written_it_is_a_temporary_folder(checkout, tmp_path, place):
    (tmp_path / "file").write_text("")
    folder = checkout.cache_folder(ROTA_CACHE=str(tmp_path / place))
    assert folder.parent == checkout.temporary / f"rota-kernels-{os.getuid()}"
    assert folder.is_dir()
    assert folder.parent.stat().st_mode & 0o777 == 0o700  # nobody else can put code there
    assert checkout.cache_folder(ROTA_CACHE=str(tmp_path / place)) == folder  # the next run finds it again


def test_caches_that_were_not_used_for_long_are_removed(checkout):
    home = checkout.cache / "kernels"
    for age in range(KEPT + 3):
        folder = home / f"version-{age}"
        folder.mkdir(parents=True)
        os.utime(folder, (1e9 - age, 1e9 - age))
    mine = checkout.cache_folder()
    assert {folder.name for folder in home.iterdir()} == {
        mine.name,
        *(f"version-{age}" for age in range(KEPT)),
    }
