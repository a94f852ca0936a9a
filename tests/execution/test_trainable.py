"""A configuration names code: nothing is called that does not say that it makes what can be trained."""

import sys

import pytest

from rota.core.errors import InputError
from rota.execution.idle import Idle, idle
from rota.execution.jobs.idle import IdleJobFactory, idle_jobs
from rota.execution.jobs.worker import JobFactory
from rota.execution.trainable import Trainable, factory, make

SOURCE = """
from __future__ import annotations
import functools
from typing import TYPE_CHECKING, Any
from rota.execution.idle import Idle
from rota.execution.jobs.idle import IdleJobFactory
import rota.execution.idle as elsewhere
import rota.execution.jobs.worker
from rota.execution.trainable import Trainable

if TYPE_CHECKING:
    from collections.abc import Mapping

called = []

def named(settings: Mapping[str, Any], seed: int) -> Idle: ...
def quoted(settings, seed) -> "elsewhere.Idle": ...
def protocol(settings, seed) -> Trainable: ...
def site(settings, seed) -> rota.execution.jobs.worker.JobFactory: ...
def later(settings, seed) -> Mine: ...
@functools.lru_cache
def cached(settings, seed) -> Idle: ...

class Mine(Idle):
    pass

class MySite:
    def open(self, job, kind, rank, size, meeting): ...

class Files:
    def open(self, name, mode="r", *more): ...

class Half:
    def begin(self, trial): ...
    def train(self, steps, hyper, changes): ...

def plain(settings, seed):
    called.append("plain")

def anything(settings, seed) -> Any:
    called.append("anything")

def half(settings, seed) -> Half:
    called.append("half")

def files(settings, seed) -> Files:
    called.append("files")

def unknown(settings, seed) -> Mapping:
    called.append("unknown")

class Caller:
    def __call__(self, settings, seed) -> Idle:
        called.append("caller")

caller = Caller()
text = "text"
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "named_code.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "named_code"
    sys.modules.pop("named_code", None)


@pytest.mark.parametrize("name", ["named", "quoted", "protocol", "site", "later", "cached", "Mine", "MySite"])
def test_a_class_that_can_be_trained_and_a_function_that_returns_one_are_fine(module, name):
    assert factory(f"{module}:{name}") is getattr(sys.modules[module], name)


@pytest.mark.parametrize(
    "name", ["plain", "anything", "half", "files", "unknown", "caller", "text", "Half", "Files", "Caller"]
)
def test_whatever_else_is_named_is_refused_with_the_line_to_add_and_is_not_called(module, name):
    with pytest.raises(InputError, match=rf"not called.* `def {name}\(settings, seed\) -> Mine:`"):
        factory(f"{module}:{name}")
    assert sys.modules[module].called == []


@pytest.mark.parametrize(
    "name",
    [
        "subprocess:call", "subprocess:Popen", "os:system", "os:execv", "builtins:eval", "builtins:exec",
        "builtins:open", "shutil:rmtree", "pathlib:Path", "zipfile:ZipFile", "tarfile:TarFile",
        "webbrowser:open", "runpy:run_path", "ctypes:CDLL", "importlib:import_module",
    ],
)  # fmt: skip
def test_nothing_of_the_standard_library_can_be_trained(name):
    with pytest.raises(InputError, match="not called"):
        factory(name)


@pytest.mark.parametrize("found", [idle, Idle, idle_jobs, IdleJobFactory, Trainable, JobFactory])
def test_what_rota_has_is_fine(found):
    assert factory(f"{found.__module__}:{found.__name__}") is found


@pytest.mark.parametrize(
    ("source", "name", "says"),
    [
        ("x = = 1", "x", "named_code cannot be imported: line 1: SyntaxError: invalid syntax"),
        ("raise ValueError('no data')", "x", "named_code cannot be imported: ValueError: no data"),
        ("import no_such_thing", "x", "No module named 'no_such_thing'"),
        ("", "Hill", "has no attribute 'Hill'"),
    ],
)
def test_a_module_that_cannot_be_imported_is_an_error_that_says_why(
    tmp_path, monkeypatch, source, name, says
):
    (tmp_path / "named_code.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "named_code", raising=False)
    with pytest.raises(InputError, match=says):
        factory(f"named_code:{name}")


MADE = """
class Whole:
    def begin(self, trial): ...
    def load(self, content): ...
    def save(self): ...
    def train(self, steps, hyper, changes): ...
    def evaluate(self): ...

class Kept(Whole):
    def __init__(self, settings, seed):
        self.given = settings, seed

class Few:
    evaluate = Whole.evaluate

def no_seed(settings) -> Whole: ...
def nothing(settings, seed) -> Whole: ...
def few(settings, seed) -> Whole:
    return Few()
"""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Whole", r"Whole: cannot be called with the settings and the seed; write `def __init__\(self, set"),
        ("no_seed", r"no_seed: cannot be called .* write `def make\(settings, seed\) -> Mine:`"),
        ("nothing", "nothing: returned a NoneType without begin, load, save, train and evaluate"),
        ("few", "few: returned a Few without begin, load, save and train;"),
    ],
)
def test_what_makes_something_else_than_it_says_is_an_error_that_says_what(tmp_path, monkeypatch, name, says):
    (tmp_path / "made_code.py").write_text(MADE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "made_code", raising=False)
    assert make("made_code:Kept", {"a": 1}, 7).given == ({"a": 1}, 7)
    with pytest.raises(InputError, match=says):
        make(f"made_code:{name}", {}, 0)
