"""One word for one thing: retired words stay out, class names are unique, docstrings stand alone.

Words that nothing else means are retired everywhere. Words that are also ordinary English are retired as
names only: of files, classes, functions, variables, keys and flags. To retire a word, add it here with what
to write instead.
"""

import ast
import io
import re
import token
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import rota.sweeps

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "src" / "rota"
MOST_LINES = 500

PREDICT, RUN, SIMULATE = "predict, prediction", "run, real run", "simulate, simulation, simulator"
PROSE = {
    "besides": "in addition, also, apart from; overhead, if it is time",
    "fleet": "cluster, slots",
    "fleets": "clusters",
    "foresight": PREDICT,
    "foretell": PREDICT,
    "foretells": PREDICT,
    "foretold": PREDICT,
    "sittings": "timing rounds",
    "undertaking": RUN,
    "undertakings": RUN,
    "venture": RUN,
    "ventures": RUN,
    "weather": "noise, drift, slowdown",
}
"""Word → what to write instead, in names and in prose alike."""
NAMES = PROSE | {
    "board": "status",
    "boards": "statuses",
    "books": "paths, run folder",
    "contender": "variant, policy, run",
    "contenders": "variants, policies, runs",
    "contest": "experiment, comparison",
    "contests": "experiments, comparisons",
    "displace": "preempt",
    "displaced": "preempted",
    "displaces": "preempts",
    "displacing": "preempting",
    "foresee": "predict",
    "handed": "assigned",
    "judge": "review",
    "judged": "reviewed",
    "liberties": "assumptions",
    "luck": "noise",
    "paces": "step times",
    "picture": "status; figure, if it is drawn",
    "pictures": "statuses; figures, if they are drawn",
    "rehearsal": SIMULATE,
    "rehearsals": SIMULATE,
    "rehearse": SIMULATE,
    "rehearsed": SIMULATE,
    "replay": f"{SIMULATE}; retrain, of the best trial",
    "replayed": "simulated; resumed, of a journal",
    "resident": "opportunistic job",
    "residents": "opportunistic jobs",
    "resides": "is opportunistic",
    "sight": "observation, view",
    "sights": "observations, views",
    "sliced": "answer",
    "slices": "assignments",
    "spell": "duration, error",
    "spells": "durations, errors",
    "told": "aligned timeline; what it is, in other names",
}
"""Word in a name → what to write instead."""
ORDINARY = {
    *("board", "boards", "books", "contest", "judge", "judged", "luck", "picture", "pictures"),
    *("sight", "sights", "slices", "spell", "spells", "told"),
}
"""Words that may be in the name of a test, which is a sentence."""
WHOLE_NAMES = {
    "Board": "JobsStatus",
    "Books": "RunPaths",
    "Ground": "TreeTables",
    "Hand": "Assign, JobWorker",
    "Handed": "Assigned",
    "Order": "Assignment",
    "Place": "Slot, Node, or what is placed",
    "Pressure": "EntropySchedule",
    "Slice": "JobAssignment",
    "Turns": "StageTurns",
}
"""Name that is retired as a whole → what to write instead."""
KEYS = {
    "beside": "copies",
    "besides": "overhead",
    "foresee": "predict_stops",
    "resident": "opportunistic",
    "site": "job",
    "slice_s": "assignment_s",
    "told": "external_allocation",
    "weather": "noise",
}
"""Key of a configuration → the key that it is now; the old one is still read, with a warning."""
FLAGS = {
    "--replay": "--retrain-best",
    "[besides]": "[overhead]",
    "[resident]": "[opportunistic]",
    "[weather]": "[noise]",
    "slice_s": "assignment_s",
    "how-faithful.md": "fidelity.md",
    "rehearse-a-population.md": "simulate-a-population.md",
    "run-for-real.md": "run-on-this-machine.md",
}
"""Text in pages and scripts → what it is now."""
RIDDLES = re.compile(
    r"(And|As|At|Behind|Between|But|By|For(?! each)|From(?! now on| a configuration)|If|In|Is it|It|Its|"
    r"Nobody|Not|Of|On|Or|Over|So|Somebody|That|Those|To|Until|Whatever|Whether (any|every|no|some)body|Who|"
    r"Whoever|Whom|Whose|With(?! `))\b"
)
"""Beginnings of a docstring that only make sense together with the name above it, or not even then."""
FIELD_RIDDLES = re.compile(r"(And|It|Its|Of|So|That|Those|Who|Whoever|Whom|Whose)\b")
"""The same of the docstrings of fields and constants."""

OTHER_MEANINGS = {
    "picture": ("training/data/",),  # an image file
    "replay": ("training/tasks/reinforcement.py", "training/tasks/test_"),  # the replay memory of DQN
    "replayed": ("training/tasks/reinforcement.py", "training/tasks/test_"),
}
"""Word → paths in which it means something else."""
PAGES_OF_NAMES = ("CHANGELOG.md", "docs/originals.md")
"""Pages that list what names were before, or are elsewhere."""
TESTS_OF_OLD_NAMES = ("tests/commands/test_renamed.py",)
NEWEST = "### Names"
"""The section of CHANGELOG.md whose words are checked; the others stay as they were."""


def found_in(pattern: str) -> list[Path]:
    return sorted(path for path in REPOSITORY.glob(pattern) if "__pycache__" not in path.parts)


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


HERE = Path(__file__)
MODULES = found_in("src/rota/**/*.py")
PYTHON = [
    path
    for folder in ("", "src/**/", "tests/**/", "scripts/", "examples/", "setup/")
    for path in found_in(f"{folder}*.py")
    if path != HERE and name_of(path) not in TESTS_OF_OLD_NAMES
]
TOML = [*found_in("config/**/*.toml"), REPOSITORY / "pyproject.toml"]
PAGES = [*found_in("*.md"), *found_in("docs/*.md"), *found_in("config/**/*.md"), *found_in("plots/*.md")]
SCRIPTS = [*found_in("scripts/*.sh"), *found_in("setup/*.sh"), *found_in("examples/*.sh")]
OTHERS = [*SCRIPTS, *found_in("src/rota/report/page/*.js"), *found_in("examples/*.ipynb")]

IN_PROSE = re.compile(rf"\b({'|'.join(PROSE)})\b", re.IGNORECASE)
IN_A_NAME = re.compile(rf"(?i:{'|'.join(NAMES)})|\b(?:{'|'.join(WHOLE_NAMES)})\b")
NOT_CODE = re.compile(
    r"\"{3}(?:\\.|(?!\"{3}).)*\"{3}|'{3}(?:\\.|(?!'{3}).)*'{3}|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*",
    re.DOTALL,
)
"""Strings and comments."""
CODE = re.compile(r"[\w.]+\(\)|`[^`\n]*`|\[[\w.\[\]]+\]|'[^'\s]*'")
"""In prose: names and keys, which may be old ones."""
STRINGS = {token.STRING, getattr(token, "FSTRING_MIDDLE", token.STRING)}


def blanked(text: str) -> str:
    """Return a text without the names in it, as long as before."""
    return CODE.sub(lambda found: " " * len(found[0]), text)


def wrong_prose(text: str, where: str, first_line: int = 1) -> Iterator[str]:
    for number, line in enumerate(blanked(text).split("\n"), first_line):
        for found in IN_PROSE.finditer(line):
            yield f"{where}:{number}: {found[0]!r}; write: {PROSE[found[0].lower()]}"


def wrong_in_name(name: str, where: str) -> Iterator[str]:
    if name in WHOLE_NAMES:
        yield f"{where}: {name}; write: {WHOLE_NAMES[name]}"
    for word in map(str.lower, re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)):
        is_meant = not any(part in where for part in OTHER_MEANINGS.get(word, ()))
        if word in NAMES and is_meant and not (word in ORDINARY and name.startswith("test_")):
            yield f"{where}: {name}, for {word!r}; write: {NAMES[word]}"


@cache
def tokens_of(path: Path) -> list[tokenize.TokenInfo]:
    """Return the tokens of a file that may have a retired word; none, quickly, of one that has none."""
    text = path.read_text("utf-8")
    if not IN_PROSE.search(text) and not IN_A_NAME.search(NOT_CODE.sub(" ", text)):
        return []
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def none_of(problems: Iterable[str]) -> None:
    found = list(dict.fromkeys(problems))
    if found:
        pytest.fail(f"{len(found)} found:\n" + "\n".join(found), pytrace=False)


def test_names_have_no_retired_words():
    none_of(
        problem
        for path in PYTHON
        for found in tokens_of(path)
        if found.type == token.NAME
        for problem in wrong_in_name(found.string, f"{name_of(path)}:{found.start[0]}")
    )


def test_files_have_no_retired_words_in_their_names():
    files = [*PYTHON, *TOML, *PAGES, *OTHERS]
    none_of(problem for path in files for problem in wrong_in_name(path.stem, name_of(path)))


def test_comments_docstrings_and_messages_have_no_retired_words():
    none_of(
        problem
        for path in PYTHON
        for found in tokens_of(path)
        if found.type == token.COMMENT or (found.type in STRINGS and re.search(r"\s", found.string))
        for problem in wrong_prose(found.string, name_of(path), found.start[0])
    )


def newest(changelog: str) -> str:
    """Return the newest section; the others are replaced by empty lines."""
    before, heading, rest = changelog.partition(f"{NEWEST}\n")
    assert heading, f"CHANGELOG.md has no section {NEWEST!r}"
    return "\n" * (before.count("\n") + 1) + re.split(r"^#", rest, maxsplit=1, flags=re.MULTILINE)[0]


def test_pages_have_no_retired_words():
    for path in (text := {path: path.read_text("utf-8") for path in PAGES}):
        if path.name == "CHANGELOG.md":
            text[path] = newest(text[path])
    none_of(problem for path in PAGES for problem in wrong_prose(text[path], name_of(path)))


def test_scripts_and_configurations_have_no_retired_words():
    none_of(
        problem
        for path in [*TOML, *OTHERS]
        for problem in wrong_prose(path.read_text("utf-8"), name_of(path))
    )


def keys_of(table: object) -> Iterator[str]:
    if isinstance(table, dict):
        for key, value in table.items():
            yield from key.split(".")
            yield from keys_of(value)
    elif isinstance(table, list):
        for value in table:
            yield from keys_of(value)


def test_configurations_use_the_keys_of_now():
    none_of(
        f"{name_of(path)}: {key}; the key is now: {KEYS[key]}"
        for path in TOML
        for key in keys_of(tomllib.loads(path.read_text("utf-8")))
        if key in KEYS
    )


def test_pages_and_scripts_use_the_keys_flags_and_links_of_now():
    none_of(
        f"{name_of(path)}:{number}: {old}; it is now: {new}"
        for path in [*PAGES, *SCRIPTS]
        if name_of(path) not in PAGES_OF_NAMES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for old, new in FLAGS.items()
        if re.search(rf"(?<![\w-]){re.escape(old)}(?![\w-])", line)
    )


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


Documented = ast.Module | ast.ClassDef | ast.FunctionDef


def definitions(node: Documented) -> Iterator[Documented]:
    """Return a module with its classes and functions, and their methods; not what is inside of functions."""
    yield node
    if not isinstance(node, ast.FunctionDef):
        for below in node.body:
            if isinstance(below, Documented):
                yield from definitions(below)


def test_class_names_are_unique():
    there = defaultdict(list)
    for path in MODULES:
        for node in definitions(parsed(path)):
            if isinstance(node, ast.ClassDef):
                there[node.name].append((path, f"{name_of(path)}:{node.lineno}"))
    none_of(
        f"{name}: {', '.join(where for _, where in found)}; name each after what an instance is"
        for name, found in there.items()
        if len([path for path, _ in found if not is_public_in_sweeps(name, path)]) > 1
    )


def is_public_in_sweeps(name: str, path: Path) -> bool:
    """Whether a class has the name that the API which `rota.sweeps` follows gives it."""
    return name in rota.sweeps.__all__ and path.is_relative_to(PACKAGE / "sweeps")


def documented(path: Path) -> Iterator[tuple[Documented, str, str]]:
    """Return what can have a docstring in a module, with the first line of it, and where that is."""
    for node in definitions(parsed(path)):
        line = 1 if isinstance(node, ast.Module) else node.lineno
        text = ast.get_docstring(node) or ""
        yield node, text.split("\n")[0], f"{name_of(path)}:{line}"


def test_modules_and_classes_have_a_docstring():
    none_of(
        f"{where}: {getattr(node, 'name', 'the module')} has no docstring"
        for path in MODULES
        for node, line, where in documented(path)
        if not line and must_be_documented(node, parsed(path))
    )


def must_be_documented(node: Documented, module: ast.Module) -> bool:
    """Whether a node is a module that is not empty, or a public class of it."""
    if isinstance(node, ast.Module):
        return bool(node.body)
    return isinstance(node, ast.ClassDef) and node in module.body and not node.name.startswith("_")


def test_the_first_line_of_a_docstring_is_a_sentence():
    none_of(
        f"{where}: {line!r} does not end with a full stop; one sentence in one line, the rest below"
        for path in MODULES
        for _, line, where in documented(path)
        if line and not line.endswith(".")
    )


def test_docstrings_stand_alone():
    none_of(
        f"{where}: {line!r}; begin with a verb in the imperative (functions) or a noun"
        for path in MODULES
        for _, line, where in documented(path)
        if RIDDLES.match(line)
    )


def fields_of(path: Path) -> Iterator[tuple[str, int]]:
    """Return the docstrings below fields and constants, with their lines."""
    for node in definitions(parsed(path)):
        if not isinstance(node, ast.FunctionDef):
            for before, after in zip(node.body, node.body[1:], strict=False):
                if (
                    isinstance(before, ast.Assign | ast.AnnAssign)
                    and isinstance(after, ast.Expr)
                    and isinstance(after.value, ast.Constant)
                    and isinstance(after.value.value, str)
                ):
                    yield after.value.value, after.lineno


def test_docstrings_of_fields_stand_alone():
    none_of(
        f"{name_of(path)}:{line}: {text.splitlines()[0]!r}; begin with what it is: Seconds, Number of, Name …"
        for path in MODULES
        for text, line in fields_of(path)
        if FIELD_RIDDLES.match(text)
    )


def test_modules_fit_on_a_few_pages():
    none_of(
        f"{name_of(path)}: {lines} lines; at most {MOST_LINES}"
        for path in MODULES
        if (lines := len(path.read_text("utf-8").splitlines())) > MOST_LINES
    )


@pytest.mark.parametrize("page", ["DESIGN.md", "CONTRIBUTING.md"])
def test_files_that_are_named_are_there(page):
    text = (REPOSITORY / page).read_text("utf-8")
    named = re.findall(r"(?<![\w/.:-])((?:[\w-]+/)+[\w-]*\.(?:py|sh|toml|md|csv))", text)
    roots = (REPOSITORY, PACKAGE)
    none_of(
        f"{page}: {path} is not there"
        for path in named
        if path != "path/to/file.py" and not any((root / path).exists() for root in roots)
    )


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        ("simulate", 0),
        ("stage", 0),  # not: sight, told … inside of another word
        ("Weather", 1),
        ("WeatherConfig", 1),
        ("timing_weather_s", 1),
        ("read_books", 1),
        ("FLEET", 1),
        ("Hand", 1),
        ("hand", 0),
        ("told", 1),
        ("test_mistakes_are_told_in_one_line", 0),
        ("test_jobs_are_rehearsed", 1),
    ],
)
def test_words_are_found_in_names(name, problems):
    assert len(list(wrong_in_name(name, "somewhere.py:1"))) == problems


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("Predicted, then run.", []),
        ("One line,\nFORETOLD in another.", ["page.md:2: 'FORETOLD'; write: predict, prediction"]),
        ("`weather` is noise now, [weather] too.", []),
        ("whether or not", []),
    ],
)
def test_words_are_found_in_prose(text, problems):
    assert list(wrong_prose(text, "page.md")) == problems


def test_a_word_that_means_something_else_is_left_there():
    assert not list(wrong_in_name("ReplayMemory", "src/rota/training/tasks/reinforcement.py:9"))
    assert list(wrong_in_name("ReplayMemory", "src/rota/simulator/jobs.py:9"))
