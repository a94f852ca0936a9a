"""The interface between rota and the code that learns.

A configuration names code. Its module is imported, but nothing is called unless it is known to make what can
be trained: a class with the right methods, a function annotated to return one, a class with step, save and
load, or a generator function of `config`, as `rota.tune` takes them.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Any, Protocol, get_args, get_type_hints

from rota.core.errors import InputError, RotaError
from rota.core.population.events import Hyper
from rota.core.registry import SUFFIX, describe_error, load_file
from rota.execution.jobs.worker import JobFactory
from rota.execution.own_code import is_trained_by_steps, trial_of

NAME = re.compile(
    r"([A-Za-z_]\w*(\.[A-Za-z_]\w*)*|[^-\x00-\x1f\x7f][^\x00-\x1f\x7f]*\.py):[A-Za-z_]\w*", re.ASCII
)


class Trainable(Protocol):
    """The trials of a worker, one at a time.

    Made once per worker, so that it can keep what all trials share. Results must follow from the settings,
    the trial and the arguments alone: an interval may be trained on any worker, and twice.
    """

    def begin(self, trial: int) -> None:
        """Become this trial before its first step."""

    def load(self, content: bytes) -> None:
        """Become what was saved, whichever trial that was."""

    def save(self) -> bytes:
        """Return all that `load` needs; it must not be a pickle."""

    def train(self, steps: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        """Train so many steps with these hyper-parameters, and the network as these changes make it."""

    def evaluate(self) -> float:
        """Return the metric; NaN if nothing is measured. Larger is better, unless `mode` is "min"."""


Factory = Callable[[Mapping[str, Any], int], Trainable | JobFactory]
"""A function of the settings and the seed of the run that returns what trains."""

METHODS = ("begin", "load", "save", "train", "evaluate")
"""The methods of a trainable."""
OPEN = ("self", *list(inspect.signature(JobFactory.open).parameters)[1:])
"""The parameters of the one method of a job factory; its name alone would be ambiguous."""


def factory(name: str) -> Factory:
    """Return what `module:name` or `path/to/file.py:name` stands for; raise InputError if it cannot train.

    Nothing is called but what the module does when it is imported.
    """
    found = named(name)
    if is_trained_by_steps(found):
        return lambda settings, seed: trial_of(found, settings.get("metric", ""), {}, seed)
    if not _can_train(made_by(found)):
        function = name.rpartition(":")[2]
        raise InputError(
            f"trial {name}: not called, as nothing says that it returns what can be trained; write what it "
            f"returns, `def {function}(settings, seed) -> Mine:`, where Mine is a class with {_said(METHODS)}"
            f", or for jobs with open({', '.join(OPEN[1:])}); or `def {function}(config):` that yields"
        )
    checked: Factory = found
    return checked


def make(name: str, settings: Mapping[str, Any], seed: int) -> Trainable | JobFactory:
    """Call what a name stands for with the settings and the seed; raise InputError if it cannot train."""
    found = factory(name)
    try:
        inspect.signature(found).bind(settings, seed)
    except TypeError:
        is_class = inspect.isclass(found)
        written = "__init__(self, settings, seed)" if is_class else "make(settings, seed) -> Mine"
        raise InputError(
            f"trial {name}: cannot be called with the settings and the seed; write `def {written}:`"
        ) from None
    except ValueError:  # built in: it does not say
        pass
    made = found(settings, seed)
    if isinstance(made, JobFactory):
        return made
    lacks = [method for method in METHODS if not callable(getattr(made, method, None))]
    if lacks:
        what = f"a {type(made).__name__} without {_said(tuple(lacks))}"
        raise InputError(f"trial {name}: returned {what}; return what can be trained")
    return made


def named(name: str) -> Any:
    """Return the object with this name in a module or a file."""
    check_name(name)
    where, _, attribute = name.rpartition(":")
    try:
        module = load_file(Path(where)) if where.endswith(SUFFIX) else importlib.import_module(where)
        return getattr(module, attribute)
    except RotaError:
        raise
    except Exception as error:
        if not isinstance(error, ImportError | AttributeError):
            raise InputError(f"trial {name}: {where} cannot be imported: {describe_error(error)}") from error
        raise InputError(
            f"trial {name}: {error}; name a function as module:function, and install what it needs "
            f'(rota\'s own: pip install "rota[train]")'
        ) from error


def made_by(found: object) -> object:
    """Return the class itself, or the one that a function is annotated to return; None if there is none."""
    if isinstance(found, type):
        return found
    found = inspect.unwrap(found) if callable(found) else found
    if not inspect.isfunction(found):
        return None
    said = SimpleNamespace(__annotations__={"return": found.__annotations__.get("return")})
    try:
        return get_type_hints(said, found.__globals__)["return"]
    except Exception:  # a name that is not there when it runs
        return None


def _can_train(kind: object) -> bool:
    """Return whether a class, or each class of a union, has what a trainable or a job factory needs."""
    if isinstance(kind, UnionType):
        return all(map(_can_train, get_args(kind)))
    if not isinstance(kind, type):
        return False
    opens = getattr(kind, "open", None)
    is_site = inspect.isfunction(opens) and tuple(inspect.signature(opens).parameters) == OPEN
    return is_site or all(callable(getattr(kind, name, None)) for name in METHODS)


def _said(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def check_name(name: str) -> None:
    """Raise InputError if a text does not look like `module:name` or `path/to/file.py:name`."""
    if not NAME.fullmatch(name):
        raise InputError(
            f"trial {name!r}: not the name of a function; write module:function or path/to/file.py:function"
        )
