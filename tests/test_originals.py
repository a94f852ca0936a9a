"""docs/originals.md: every command, flag, key, file and name that it says is rota's is there.

In a table, that is what stands in the right column between backquotes. Each of them must be of a kind that
can be looked up.
"""

import argparse
import re
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import pytest

import rota
import rota.sweeps
from rota.cli import COMMANDS, build_parser
from rota.config.bind import keys
from rota.config.describe import describe
from rota.core.population.events import Reported
from rota.learning.config import LearnConfig
from rota.library.populations import KNOWN, option_classes
from rota.library.real_run_config import JobsConfig, RunConfig
from rota.policies import growth
from rota.policies.cluster.registry import ALIASES, SCHEDULERS, scheduler_class
from rota.simulator.jobs_config import SimulateConfig
from rota.simulator.population_config import PopulationsConfig
from rota.training.config import TrainConfig
from rota.training.setup import Setup

REPOSITORY = Path(__file__).parents[1]
PAGE = (REPOSITORY / "docs" / "originals.md").read_text()
ROWS = [line.strip("|").split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
CONFIGS = (SimulateConfig, PopulationsConfig, RunConfig, JobsConfig, TrainConfig, LearnConfig)
ENDS = (".py", "/__init__.py")
THEIRS = {"_pr", "SlurmBackend"}
"""In the right column, too."""
TABLES = {"grid", "kinds", "options", "training"}
"""That are not bound as a whole."""
OUR_NAMES = {
    *SCHEDULERS,
    *ALIASES,
    *KNOWN,
    "restart",
    "spread",
    "anywhere",
    "gpa",
    "spa",
    "Fixed",
    "Never",
    "failed",
}


def spans(text):
    return [span for found in re.findall(r"`([^`]+)`", text) if (span := found.strip())]


def right_spans():
    """Each with the row that it stands in; what begins with a dot goes on from the key before it."""
    for row in ROWS:
        before = ""
        for span in spans(" | ".join(row[1:])):
            whole = before.rpartition(".")[0] + span if re.match(r"\.[a-z_]+(=|$)", span) else span
            before = re.sub(r"^rota .*--set ", "", whole).partition("=")[0]
            before = before.removeprefix("--set ") if before.startswith("--set ") else before
            yield row[0].strip(), whole


SPANS = list(right_spans())


@cache
def known_keys():
    found = {re.sub(r"\[\]", "", setting.key) for config in CONFIGS for setting in describe(config)}
    options = {**option_classes(), **{name: scheduler_class(name) for name in SCHEDULERS}}
    found |= {
        f"options.{name}.{key}" for name, kind in options.items() if is_dataclass(kind) for key in keys(kind)
    }
    found |= {f"training.{field.name}" for field in fields(Setup)}
    return found | {key.rpartition(".")[2] for key in found} - {"NAME"}


@cache
def parsers():
    """Command, or command and verb → its flags."""
    found = {}

    def walk(parser, name):
        found[name] = {flag for action in parser._actions for flag in action.option_strings}
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for verb, inner in action.choices.items():
                    walk(inner, f"{name} {verb}".strip())

    walk(build_parser(), "")
    return found


@cache
def sources():
    return "\n".join(path.read_text() for path in sorted((REPOSITORY / "src" / "rota").rglob("*.py")))


def is_key(text):
    """Also a table of keys; a name that is the user's is called NAME in what is known."""
    parts = re.sub(r"\s*=.*", "", text).split(".")
    for known in known_keys():
        names = known.split(".")[: len(parts)]
        if [part if name == "NAME" else name for name, part in zip(names, parts, strict=False)] == parts:
            return True
    return False


def is_table(text):
    name = re.fullmatch(r"\[([\w.]+)\]", text)
    return bool(name) and (is_key(name[1].partition(".")[0]) or name[1].partition(".")[0] in TABLES)


def are_flags(text):
    """All of one command, if one is named; else each of any."""
    words = text.split()
    flags = [word for word in words if re.match(r"--?[a-z]", word)]
    if words[0] == "rota":
        names = [name for name in (" ".join(words[1:3]), words[1]) if name in parsers()]
        return bool(names) and all(flag in parsers()[names[0]] for flag in flags)
    return (
        bool(flags)
        and words[0] in flags
        and all(any(flag in known for known in parsers().values()) for flag in flags)
    )


def sets_keys(text):
    return all(is_key(key) for key in re.findall(r"--set ([\w.-]+)=", text))


def is_file(text):
    if text.startswith("bash "):
        return (REPOSITORY / text.split()[1]).is_file()
    return (REPOSITORY / text).exists() or (
        re.fullmatch(r"[\w-]+\.(json|jsonl|csv|md|toml)", text) is not None
        and text.removeprefix("N") in sources()
    )


def is_python(text):
    """A module, or what is defined in one; looked up in its file, as it may need what is not installed."""
    name = re.sub(r"^import (\S+) as ss$", r"\1", text)
    if not re.fullmatch(r"rota(\.\w+)+", name):
        return name == ".summary()" and hasattr(rota.sweeps.Result, "summary")
    module, _, attribute = name.rpartition(".")
    files = [REPOSITORY / "src" / f"{path.replace('.', '/')}{end}" for path in (name, module) for end in ENDS]
    whole, own = [any(file.is_file() for file in pair) for pair in (files[:2], files[2:])]
    defined = re.compile(rf"^(class {attribute}\b|def {attribute}\b|    \"{attribute}\",)", re.MULTILINE)
    return whole or (own and any(defined.search(file.read_text()) for file in files[2:] if file.is_file()))


def is_ours(text):
    if re.match(r"(rota|--?[a-z])", text) and not re.match(r"rota\.", text):
        return are_flags(text) and sets_keys(text)
    named = text.replace(
        "…",
        "multi-resource-blossom-same-gpu-unaware" if "worst" in text else "multi-resource-blossom-same-gpu",
    )
    return any(
        (
            named in OUR_NAMES,
            text in THEIRS,
            text in Reported._fields,
            text in COMMANDS,
            is_table(text),
            is_file(text),
            is_python(text),
            is_key(text),
            re.fullmatch(r"seed\d", text),
        )
    )


@pytest.mark.parametrize(("there", "here"), SPANS, ids=[here for _, here in SPANS])
def test_what_stands_in_the_right_column_is_there(there, here):
    assert is_ours(here), f"{there} → {here}"


def test_classes_that_are_named_are_there():
    assert (growth.Fixed.__name__, growth.Never.__name__) == ("Fixed", "Never")


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row[1].startswith("the same")], ids=lambda row: row[0]
)
def test_what_is_the_same_has_the_same_name(row):
    for span in spans(row[0]):
        if found := re.fullmatch(r"ss\.(\w+)", span):
            assert hasattr(rota.sweeps, found[1]), span


@pytest.mark.parametrize(
    "wrong",
    [
        "rota simulate --sched x", "rota nonsense", "--nonsense", "options.era.stages", "uniform",
        "retirement.latest",
        "src/rota/nothing.py", "nothing.json", "bash scripts/nothing.sh", "rota.sweeps.Nothing", "[nothing]",
        "rota run --set allocatoin=era",
    ],
)  # fmt: skip
def test_what_is_not_there_is_found(wrong):
    assert not is_ours(wrong)
