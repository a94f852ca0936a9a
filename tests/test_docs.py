"""README.md and docs/: every block is run, every table is the file that it names, every link leads somewhere.

A page is followed in order, in a copy of the checkout of its own. Lines of a block of `sh` are typed one
after the other; a block of `python` is a script; a block that a comment `file: NAME` stands above is written
to that file. `Hints` explains comments of the form `test: …`.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import rota
from rota.cli import COMMANDS, main

REPOSITORY = Path(__file__).parents[1]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
NAMES = [str(page.relative_to(REPOSITORY)) for page in PAGES]
LANGUAGES = {"sh", "python", "toml", "csv", "text"}
NOT_RUN = 5
"""The number of blocks that cannot be run here. Lower it when you can; think before you raise it."""
AT_MOST_S = 400
FIXTURES = {"ray": "ray", "slurm": "slurm_of_all_tests"}
"""The fixtures of the engines that blocks need."""
ADDRESS = "HOST:PORT"
"""The address of a Ray cluster, in pages."""
BLOCK = re.compile(
    r"(?P<comments>(?:^<!--(?:(?!-->).)*-->\n+)*)^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Hints:
    """What comments above a block tell a test, separated by semicolons."""

    not_run: str = ""
    """`not run: REASON`."""
    needs: frozenset[str] = frozenset()
    """`needs ray`, `needs slurm`."""
    everywhere: str = ""
    """Anything else is put behind every line, like --quick."""
    lines: dict[int, str] = field(default_factory=dict)
    """`line N: …` is put behind that line only."""

    @classmethod
    def of(cls, comments: str) -> "Hints":
        texts = re.findall(r"<!-- test: (.*?) -->", comments, re.DOTALL)
        not_run, needs, everywhere, lines = "", set(), [], {}
        for part in (" ".join(part.split()) for text in texts for part in text.split(";")):
            if part.startswith("not run: "):
                not_run = part.removeprefix("not run: ")
            elif part.startswith("needs "):
                needs.add(part.removeprefix("needs "))
            elif found := re.fullmatch(r"line (\d+): (.+)", part, re.DOTALL):
                lines[int(found[1])] = found[2]
            else:
                everywhere.append(part)
        return cls(not_run, frozenset(needs), " ".join(everywhere), lines)


@dataclass(frozen=True)
class Block:
    """Some lines between two fences."""

    page: Path
    line: int
    language: str
    body: str
    comments: str

    @property
    def hints(self) -> Hints:
        return Hints.of(self.comments)

    @property
    def file(self) -> str:
        """The file that it is written to, if any."""
        found = re.search(r"<!-- file: (\S+) -->", self.comments)
        return found[1] if found else ""

    @property
    def name(self) -> str:
        """The path of its page."""
        return str(self.page.relative_to(REPOSITORY))

    @property
    def where(self) -> str:
        return f"{self.name}:{self.line}"

    def commands(self) -> list[str]:
        """Return the lines as they are typed: without comments, with what a test adds."""
        text = re.sub(r"\\\n\s*", "", self.body)
        bare = [re.sub(r"\s+# .*$", "", line) for line in text.splitlines() if line and line[0] != "#"]
        hints = self.hints
        return [
            " ".join(part for part in (line, hints.everywhere, hints.lines.get(number, "")) if part)
            for number, line in enumerate(bare, 1)
        ]


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(
            page,
            text.count("\n", 0, found.start("body")),
            found["language"],
            found["body"],
            found["comments"],
        )
        for found in BLOCK.finditer(text)
    ]


ALL = [block for page in PAGES for block in blocks(page)]


@dataclass(frozen=True)
class Reader:
    """A reader who does what a page says, in a copy of the checkout."""

    folder: Path
    environment: dict[str, str]
    engines: dict[str, Any]

    def follow(self, page: Path) -> None:
        for block in blocks(page):
            if block.file:
                (self.folder / block.file).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / block.file).write_text(block.body)
            if not block.hints.not_run:
                for command in self.asked(block):
                    self.type(command, block.where)

    def asked(self, block: Block) -> list[str]:
        if block.language == "sh":
            return block.commands()
        if block.language == "python" and not block.file:
            (self.folder / "block.py").write_text(block.body)
            return [f"{sys.executable} block.py"]
        return []

    def type(self, command: str, where: str) -> None:
        if "ray" in self.engines:
            command = command.replace(ADDRESS, self.engines["ray"].address)
        if command.startswith("sudo "):
            assert "--dry-run" in command, f"{where}: would change this machine"
            command = command.removeprefix("sudo ")
        queued = command.startswith("sbatch ")
        if queued:
            command = command.replace("sbatch", "sbatch --parsable", 1)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=AT_MOST_S,
        )
        said = f"{where}: {command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        assert done.returncode == 0, said
        if queued:
            self.engines["slurm"].wait_for(done.stdout.strip())


def copy_checkout(folder: Path) -> Path:
    """Copy the files that git tracks or would add, as they are now. Nothing is installed from them."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(command, cwd=REPOSITORY, text=True).split("\0"):
        if name and (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, folder / name)
    (folder / "scripts" / "setup.sh").write_text(f'#!/bin/bash\necho "{sys.executable}"\n')
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


@pytest.fixture(scope="session")
def followed(request, tmp_path_factory, slurm_guarded):
    """Page → the future of following it, of the pages that are asked for.

    Pages that need Ray or Slurm come first, one at a time: actors that wait for a core give up. The others
    share the cores.
    """
    asked = [
        item.callspec.params["name"] for item in request.session.items if "followed" in item.fixturenames
    ]
    engines = {
        name: request.getfixturevalue(FIXTURES[name]) for name in sorted(set().union(*map(needs, asked)))
    }
    folders = {name: tmp_path_factory.mktemp("page") for name in asked}
    with ThreadPoolExecutor(1) as alone, ThreadPoolExecutor(os.cpu_count()) as together:
        first = {
            name: alone.submit(follow, name, folders[name], engines, slurm_guarded)
            for name in asked
            if needs(name)
        }

        def follow_later(name: str) -> None:
            wait(first.values())
            follow(name, folders[name], {}, slurm_guarded)

        yield first | {name: together.submit(follow_later, name) for name in asked if not needs(name)}


def needs(name: str) -> set[str]:
    """Return the engines that blocks of a page need."""
    return set().union(*(block.hints.needs for block in ALL if block.name == name))


def follow(name: str, folder: Path, engines: dict[str, Any], guarded: Any) -> None:
    """Do what a page says. TMPDIR is in /tmp, because paths of sockets must be short."""
    environment = dict(engines["slurm"].environment if "slurm" in needs(name) else os.environ)
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    with tempfile.TemporaryDirectory(prefix="rota-page-", dir="/tmp") as short:
        environment["TMPDIR"] = short
        with guarded(f"{short}/rota-slurm-*") if "slurm" in needs(name) else nullcontext():
            Reader(copy_checkout(folder / "rota"), environment, engines).follow(REPOSITORY / name)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_can_be_followed_word_by_word(name, followed):
    followed[name].result()


def test_blocks_say_what_they_are():
    for block in ALL:
        assert block.language in LANGUAGES, f"{block.where}: a block of {block.language!r}"
        assert not re.search(r"^ {4}(rota|bash|python) ", block.page.read_text(), re.MULTILINE), block.where


def test_few_blocks_are_not_run_and_each_says_why():
    left = [block for block in ALL if block.hints.not_run]
    assert len(left) <= NOT_RUN, [block.where for block in left]
    assert all(len(block.hints.not_run) > 10 for block in left)


def test_every_file_of_a_page_is_used_by_a_command_below_it():
    for block in ALL:
        assert block.language not in ("toml", "csv") or block.file, f"{block.where}: what is it called?"
        if block.file:
            below = [each for each in ALL if each.page == block.page and each.line > block.line]
            names = (block.file, Path(block.file).name, Path(block.file).stem)
            assert any(any(name in each.body for name in names) for each in below), block.where


def test_the_readme_is_short():
    assert len((REPOSITORY / "README.md").read_text().splitlines()) < 200


def test_tables_and_numbers_are_those_that_were_measured():
    command = [sys.executable, REPOSITORY / "scripts" / "tables.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}; run scripts/tables.py"


def prose(page: Path) -> str:
    """Return the sentences: without blocks, code, comments, and numbers that come from a file."""
    text = BLOCK.sub("", page.read_text())
    text = re.sub(r"<!--=[\w-]+-->.*?<!--/-->", "", text, flags=re.DOTALL)
    return re.sub(r"<!--.*?-->|`[^`]*`|\]\([^)]*\)", "", text, flags=re.DOTALL)


UNIT = re.compile(r"(?<![A-Za-z\d.])\d[\d.,]*\s?(?:%|×|(?:ms|µs|s|MB|GB|seconds|minutes|hours|times as)\b)")


@pytest.mark.parametrize("name", NAMES)
def test_no_sentence_has_a_measurement_of_its_own(name):
    found = UNIT.findall(prose(REPOSITORY / name))
    assert not found, f"{name}: {found}; put it into results/measured, or in code quotes if it is a setting"


def test_the_command_of_a_number_stands_on_the_page_that_quotes_it():
    singles = tomllib.loads((REPOSITORY / "results/measured/single.toml").read_text())
    quoted = set()
    for page in PAGES:
        text = page.read_text()
        for name in re.findall(r"<!--=([\w-]+)-->", text):
            quoted.add(name)
            said = " ".join(text.split())
            assert singles[name]["command"] in said, f"{page.name}: {name}: {singles[name]['command']}"
    assert quoted == set(singles)


def test_a_table_is_made_by_one_command_wherever_it_stands():
    made: dict[str, str] = {}
    for page in PAGES:
        for file, command in re.findall(r"<!-- (results/measured/\S+), made by: (.+?) -->", page.read_text()):
            assert made.setdefault(file, command) == command, f"{page.name}: {file}"
    there = {f"results/measured/{file.name}" for file in (REPOSITORY / "results/measured").glob("*.txt")}
    assert there <= set(made), "a table that no page shows"


def test_the_first_table_of_the_readme_is_what_the_simulator_gives(capsys, monkeypatch):
    """All but the last column, the time that it takes."""
    monkeypatch.chdir(REPOSITORY)
    assert main(["simulate"]) == 0
    shown = (REPOSITORY / "results/measured/simulate.txt").read_text()
    assert _without_last_column(capsys.readouterr().out) == _without_last_column(shown)


def _without_last_column(table: str) -> list[list[str]]:
    return [
        line.split()[:-1] for line in table.splitlines() if line.strip() and not line.startswith("scheduler")
    ]


LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)]*))?\)")


OTHERS = [
    *("DESIGN.md", "CONTRIBUTING.md", "CHANGELOG.md"),
    *("results/README.md", "plots/README.md", "config/workload/README.md"),
]


@pytest.mark.parametrize("name", [*NAMES, *OTHERS])
def test_links_lead_somewhere(name):
    """To a file: a folder is no page of the site."""
    page = REPOSITORY / name
    for target, anchor in LINK.findall(page.read_text()):
        if not target.startswith("http"):
            found = page.parent / target if target else page
            assert found.is_file(), f"{name}: {target}"
            assert not anchor or anchor in _anchors(found), f"{name}: {target}#{anchor}"


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", NAMES)
def test_files_and_commands_that_are_named_are_there(name):
    for code in re.findall(r"`([^`\n]+)`", BLOCK.sub("", (REPOSITORY / name).read_text())):
        for path in re.findall(
            r"(?<![\w/.])((?:src|config|scripts|setup|tests|examples|docs)/[\w./-]+)", code
        ):
            assert (REPOSITORY / path).exists() or "…" in code, f"{name}: {path}"
        if found := re.match(r"rota ([a-z]+)", code):
            assert found[1] in COMMANDS, f"{name}: {code}"


def test_every_page_is_in_the_index():
    index = (REPOSITORY / "docs" / "README.md").read_text()
    assert all(f"]({page.name})" in index for page in PAGES[1:] if page.name != "README.md")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site of all pages."""
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None:
        pytest.skip("needs mkdocs: bash scripts/setup.sh docs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-P", "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=AT_MOST_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_has_every_page_and_describes_all_that_is_exported(site):
    pages = {name.replace("README.md", "index.md").replace(".md", ".html") for name in [*NAMES, *OTHERS]}
    assert {name for name in pages if not (site / name).is_file()} == set()
    reference = (site / "docs" / "api.html").read_text()
    names = [name for name in rota.__all__ if not name.startswith("_")]
    assert [name for name in names if f'id="rota.{name}"' not in reference] == []
    assert ">>>" not in re.sub(r"<code>.*?</code>", "", reference, flags=re.DOTALL).replace("&gt;", ">")


def test_nothing_on_the_site_comes_from_the_network(site):
    loaded = re.compile(r"<(?:script|img|iframe)[^>]*src=\"?http[^>]*|<link[^>]*stylesheet[^>]*http[^>]*")
    assert [found for page in site.rglob("*.html") for found in loaded.findall(page.read_text())] == []
    assert [file for file in site.rglob("*.css") if re.search(r"url\(.?http", file.read_text())] == []
