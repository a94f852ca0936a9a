"""rota without a checkout: a wheel is built, installed into an empty environment, and used in empty folders.

The base installation is a real one, from the package index; where none can be reached, tests are skipped.
The extra `train` takes packages that are installed already: for its test, the environment gets the folder of
the packages that these tests run with, behind its own, and pip finds torch there instead of loading it again.
"""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import rota

REPOSITORY = Path(__file__).parents[1]
MOST_BYTES = 2_500_000
AT_MOST_S = 800
SHIPPED = "rota/shipped/"


def tracked(*folders: str) -> list[str]:
    """Files that are in the repository, or would be if they were added."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *folders]
    listed = subprocess.check_output(command, cwd=REPOSITORY, text=True).splitlines()
    return [name for name in listed if (REPOSITORY / name).is_file()]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """A wheel of this checkout, built from a copy: a build leaves files behind."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name in tracked(
        "src", "config", "examples", "results", "*.py", "*.toml", "*.in", "README.md", "LICENSE"
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((REPOSITORY / name).read_bytes())
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", built, source)
    (file,) = built.glob("*.whl")
    return file


def pip(python: str | Path, *words: object) -> None:
    command = [python, "-m", "pip", *map(str, words), "--disable-pip-version-check"]
    done = subprocess.run(command, env=outside(), capture_output=True, text=True, timeout=2 * AT_MOST_S)
    unreachable = re.search(r"No matching distribution found|Could not fetch|NewConnectionError", done.stderr)
    if done.returncode and unreachable and os.environ.get("ROTA_ENGINES") != "required":
        pytest.skip(f"no package index: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr[-3000:]


def outside(**more: str) -> dict[str, str]:
    """The environment variables of a shell that knows nothing of this checkout and its Python.

    What has been compiled from the same sources serves both.
    """
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in ours} | more


@dataclass(frozen=True)
class Installed:
    """An environment that has rota, and a folder to use it in."""

    environment: Path
    folder: Path

    @property
    def python(self) -> Path:
        return self.environment / "bin" / "python"

    def try_(self, command: str) -> subprocess.CompletedProcess[str]:
        """Type a command."""
        variables = outside(PATH=f"{self.python.parent}:{os.environ['PATH']}")
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=AT_MOST_S,
        )

    def do(self, command: str) -> str:
        """Type a command that must work; what it prints."""
        done = self.try_(command)
        assert done.returncode == 0, f"{command}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
        return done.stdout


@pytest.fixture(scope="session")
def base(wheel, tmp_path_factory) -> Installed:
    """`pip install WHEEL` in a new environment."""
    environment = tmp_path_factory.mktemp("environment") / "base"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True, timeout=AT_MOST_S)
    pip(environment / "bin" / "python", "install", wheel)
    return Installed(environment, tmp_path_factory.mktemp("empty"))


@pytest.fixture
def train(wheel, base, tmp_path) -> Iterator[Installed]:
    """`pip install 'WHEEL[train]'` into the same environment, where torch is installed already (see above).

    It is the same one so that nothing is installed twice; afterwards it has no torch again.
    """
    asked = [base.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    borrowed = Path(subprocess.check_output(asked, text=True).strip()) / "borrowed.pth"
    borrowed.write_text(f"{sysconfig.get_path('purelib')}\n")
    try:
        pip(base.python, "install", f"{wheel}[train]")
        yield replace(base, folder=tmp_path)
    finally:
        borrowed.unlink()


@pytest.fixture
def empty(base, tmp_path) -> Installed:
    """The base installation, in an empty folder."""
    return replace(base, folder=tmp_path)


def readme(beginning: str) -> str:
    """The one line of the README that begins so, without what is said about it."""
    text = (REPOSITORY / "README.md").read_text()
    (line,) = re.findall(rf"^{re.escape(beginning)}.*$", text, re.MULTILINE)
    return re.sub(r"\s+# .*$", "", line)


def first_column(table: str) -> list[str]:
    return [line.split()[0] for line in table.splitlines() if line and "[" not in line]


def test_the_wheel_is_small_and_has_the_shipped_files_and_nothing_else_of_the_checkout(wheel):
    assert wheel.stat().st_size < MOST_BYTES
    inside = zipfile.ZipFile(wheel).namelist()
    shipped = {name.removeprefix(SHIPPED) for name in inside if name.startswith(SHIPPED)}
    assert shipped == set(tracked("config", "examples", "results/recordings"))
    assert "rota/agents/place/agent.json" in inside
    assert {name.split("/")[0] for name in inside} == {"rota", f"rota-{rota.__version__}.dist-info"}


def test_what_is_used_is_the_wheel_and_there_is_no_torch(empty):
    where = Path(empty.do("python -c 'import rota; print(rota.__file__)'").strip())
    assert empty.environment in where.parents
    assert empty.try_("python -c 'import torch'").returncode == 1


def test_a_bare_simulate_gives_the_first_table_of_the_readme(empty):
    printed = empty.do("rota simulate")
    shown = (REPOSITORY / "results" / "measured" / "simulate.txt").read_text()

    def without_wall_times(text: str) -> list[list[str]]:
        return [line.split()[:-1] for line in text.splitlines()]

    assert without_wall_times(printed) == without_wall_times(shown)
    assert not list(empty.folder.iterdir())


def test_the_lines_of_the_readme_that_need_no_torch_work_in_an_empty_folder(empty):
    assert first_column(empty.do(readme("rota simulate --trace"))) == ["srtf", "tiresias", "muri-l"]
    allocations = first_column(empty.do(readme("rota simulate --population")))
    assert allocations == ["fifo", "era", "eta", "hrfs", "finish", "learned"]
    block = re.search(
        r"## From Python\n+```python\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL
    )
    (empty.folder / "block.py").write_text(block[1])
    assert "aging" in empty.do("python block.py")
    empty.do("rota report results/mine --out results/all.html")
    assert (empty.folder / "results" / "all.html").stat().st_size > 100_000


def test_a_shipped_file_is_used_only_where_there_is_none_of_its_name_and_a_note_says_so(empty):
    command = "rota simulate --trace config/workload/shipped.csv --jobs 5 --schedulers fifo --json"
    assert (
        "note: config/workload/shipped.csv: not here, the shipped one is used" in empty.try_(command).stderr
    )
    own = empty.folder / "config" / "workload" / "shipped.csv"
    own.parent.mkdir(parents=True)
    own.write_text("id,submit_s,gpus,duration_s\na,0,1,100\n")
    done = empty.try_(command)
    assert (done.returncode, "shipped one" in done.stderr) == (0, False)
    assert '"jobs": 1' in done.stdout


def test_init_copies_what_can_be_edited_and_replaces_nothing(empty):
    assert "cd mine && rota simulate config/simulate/shipped.toml" in empty.do("rota init mine")
    mine = empty.folder / "mine"
    copied = {str(file.relative_to(mine)) for file in mine.rglob("*") if file.is_file()}
    assert copied == set(tracked("config", "examples", "results/recordings"))
    config = mine / "config" / "simulate" / "shipped.toml"
    assert config.read_bytes() == (REPOSITORY / "config" / "simulate" / "shipped.toml").read_bytes()

    config.write_text("# mine\n" + config.read_text())
    again = empty.try_("rota init mine")
    assert again.returncode == 2
    assert again.stderr.startswith("rota: error: mine/config: is there already; give another folder")
    assert config.read_text().startswith("# mine\n")

    edited = "cd mine && rota simulate config/simulate/shipped.toml --quick --schedulers fifo,srtf"
    assert first_column(empty.do(edited)) == ["fifo", "srtf"]


def test_init_says_what_is_wrong(empty):
    (empty.folder / "file").touch()
    for words, message in {
        "": "required: DIR",
        "file": "rota: error: file: is not a folder; ",
        "/proc/nowhere": "rota: error: /proc/nowhere: cannot be written: ",
    }.items():
        done = empty.try_(f"rota init {shlex.quote(words)}" if words else "rota init")
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1 or not words


def test_without_the_extra_a_command_that_trains_says_how_to_get_it(empty):
    done = empty.try_(readme("rota learn"))
    assert done.returncode == 2
    assert 'install it with: pip install "rota[train]"' in done.stderr
    assert "scripts/" not in done.stderr


def test_with_the_extra_the_lines_of_the_readme_that_train_work(train):
    where = Path(train.do("python -c 'import rota; print(rota.__file__)'").strip())
    assert train.environment in where.parents
    short = "--set population.trials=4 --set population.steps=50"
    train.do(f"{readme('rota run config/run/local.toml')} {short}")
    assert "4 of 4 trials done" in train.do(readme("rota status results/first"))
    learned = train.do(f"{readme('rota learn')} --set episodes=640")
    assert "results/agent" in learned
    assert len(train.do(readme("rota evaluate")).splitlines()) > 14  # trees
