"""Imports point one way only; what must be light is light."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "rota"

EVERYTHING = {
    "core", "config", "policies", "workload", "recordings", "simulator", "results", "training", "learning",
    "execution", "sweeps", "figures", "report", "library", "commands", "cli",
}  # fmt: skip
MAY_IMPORT = {  # part of the package → parts it may import
    "core": {"core"},
    "config": {"core", "config"},
    "policies": {"core", "config", "policies"},
    "recordings": {"core", "config", "recordings"},
    "workload": {"core", "recordings", "workload"},
    "simulator": {"core", "policies", "workload", "recordings", "simulator"},
    "results": {"core", "config", "workload", "results"},
    "training": {"core", "config", "recordings", "training"},
    "learning": {
        "core",
        "config",
        "policies",
        "workload",
        "recordings",
        "simulator",
        "training",
        "learning",
    },
    "execution": {"core", "config", "results", "execution"},
    "sweeps": {"core", "policies", "execution", "sweeps"},
    "figures": {"core", "config", "policies", "workload", "recordings", "results", "learning", "figures"},
    "report": {"core", "policies", "workload", "recordings", "results", "learning", "figures", "report"},
    "library": EVERYTHING - {"training", "learning", "commands", "cli"},
    "commands": EVERYTHING,
    "cli": EVERYTHING,
    "__main__": EVERYTHING,
    "__init__": {"core", "workload", "learning", "library"},
}
MAY_USE = {  # part of the package → what it may import from elsewhere, apart from the standard library
    "core": {"numpy", "numba"},
    "config": {"tomli_w"},
    "recordings": {"numpy"},
}
HEAVY = {"numpy", "numba", "torch", "ray", "matplotlib"}

FILES = sorted(SRC.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def part_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imported(source: str, package: str) -> Iterator[str]:
    """The full name of everything a module of `package` imports, wherever in the module it does so."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def imports_of(path: Path) -> set[str]:
    package = ".".join(["rota", *path.relative_to(SRC).parts[:-1]])
    return set(imported(path.read_text("utf-8"), package))


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("import rota.core.view", "rota.core.view"),
        ("from rota.core import view", "rota.core.view"),
        ("from rota import core", "rota.core"),
        ("from . import rank", "rota.policies.cluster.rank"),
        ("from .rank import key", "rota.policies.cluster.rank.key"),
        ("from ..allocation import era", "rota.policies.allocation.era"),
        ("def f():\n    import numpy as np", "numpy"),
    ],
)
def test_every_way_to_import_is_seen(line, name):
    assert list(imported(line, "rota.policies.cluster")) == [name]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_follow_the_layers(path):
    part = part_of(path)
    assert part in MAY_IMPORT, f"say in MAY_IMPORT what {part} may import"
    parts = {name.split(".")[1] for name in imports_of(path) if name.startswith("rota.")}
    wrong = {other for other in parts - MAY_IMPORT[part] if not other.startswith("__")}
    assert not wrong, f"{name_of(path)} may not import {sorted(wrong)}"


@pytest.mark.parametrize("path", [path for path in FILES if part_of(path) in MAY_USE], ids=name_of)
def test_the_inner_parts_use_little_from_elsewhere(path):
    tops = {name.split(".")[0] for name in imports_of(path)}
    wrong = tops - sys.stdlib_module_names - {"rota"} - MAY_USE[part_of(path)]
    assert not wrong, f"{name_of(path)} may not import {sorted(wrong)}"


def test_a_worker_begins_without_importing_anything_heavy():
    """What a trial needs is imported with it."""
    code = "import sys; import rota.execution.worker; print(*sys.modules)"
    assert not HEAVY & set(subprocess.check_output([sys.executable, "-c", code], text=True).split())


def test_the_command_line_is_built_without_importing_anything_heavy():
    code = "import sys; from rota.cli import build_parser; build_parser(); print(*sys.modules)"
    assert not HEAVY & set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
