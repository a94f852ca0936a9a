"""What `rota` exports: all of it is there, light to import, typed, and with examples that run."""

import ast
import doctest
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import rota

HEAVY = {"numpy", "numba", "pandas", "torch", "matplotlib", "cloudpickle", "rota.core"}


def test_importing_rota_imports_nothing_heavy():
    code = "import sys; import rota; print(*sys.modules)"
    found = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "rota" in found
    assert not HEAVY & set(found)


def test_simulating_does_not_import_what_only_training_needs():
    code = (
        "import sys; import rota; rota.simulate(rota.synthetic_trace(jobs=5, gpus=8), "
        "rota.Cluster.uniform(1, 8), 'srtf'); print(*sys.modules)"
    )
    found = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not {"torch", "ray", "matplotlib", "pandas", "tensorflow"} & set(found)


@pytest.mark.parametrize("name", rota.__all__)
def test_every_name_is_there(name):
    assert getattr(rota, name) is not None
    assert name in dir(rota)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'rota' has no attribute 'simulat'"):
        rota.simulat  # noqa: B018


def test_type_checkers_see_the_names_that_are_exported():
    """Those that are imported for types are those that are imported when asked for, from the same modules."""
    tree = ast.parse(Path(rota.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {alias.name: node.module for node in block.body for alias in node.names}
    assert typed == rota._WHERE
    assert {*typed, "__version__"} == set(rota.__all__)


@pytest.mark.parametrize("module", sorted({*rota._WHERE.values(), "rota.library.inputs"}))
def test_examples_in_docstrings_run(module):
    found = doctest.testmod(import_module(module))
    assert found.failed == 0


def test_what_people_start_from_has_an_example():
    for name in set(rota.__all__) - {"__version__", "RotaError", "Comparison", "TuneResult"}:
        examples = doctest.DocTestFinder(recurse=False).find(getattr(rota, name))
        assert any(each.examples for each in examples), name
