"""Training of a user's function or class, as `rota.tune` takes it."""

import hashlib
import inspect
import json
import pickle
import sys
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

from rota.core.errors import InputError
from rota.core.population.events import Hyper


def as_number(value: Any, how: str) -> float:
    """Return a metric as a float; raise InputError, which says where it comes from, if it is no number."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        what = "nothing" if value is None else f"{str(value)[:60]!r}, a {type(value).__name__}"
        raise InputError(f"{how} {what}; it must be a number (NaN if nothing is measured)") from None


NAME = "rota.execution.own_code:own_code"
"""The name of the function that makes trials of what `rota.tune` was given."""
METHODS = ("step", "save", "load")
LIVE = 8
"""Number of generators that a worker keeps; others are run again from their first step."""
Choices = Mapping[str, Mapping[str, Any]]
"""Hyper-parameter → word → the value that it stands for, if that is neither a number nor a word."""


class Code:
    """A user's code, how to call it, and the metric that counts."""

    def __init__(self, train: Any, metric: str, seed: int, choices: Choices | None = None) -> None:
        self.train, self.metric, self._seed = train, metric, seed
        self._choices = choices or {}
        self._takes_seed = "seed" in _parameters(train)
        self.name = getattr(train, "__name__", type(train).__name__)

    def call(self, config: dict[str, Any], trial: int) -> Any:
        """Call it with the configuration of a trial, and with a seed of its own if it takes one."""
        if not self._takes_seed:
            return self.train(config)
        import numpy as np  # workers of those that need no seed do not wait for it

        return self.train(config, seed=int(np.random.SeedSequence((self._seed, trial)).generate_state(1)[0]))

    def config(self, hyper: Hyper) -> dict[str, Any]:
        """Return hyper-parameters as the user wrote them."""
        return {name: self._choices.get(name, {}).get(value, value) for name, value in hyper.items()}

    def worth(self, found: Any, how: str) -> float:
        """Return the metric that counts from a dictionary, or a single number as it is."""
        if not isinstance(found, Mapping):
            return as_number(found, f"{self.name}: {how}")
        name = next(iter(found), "") if len(found) == 1 and not self.metric else self.metric
        if not name:
            several = ", ".join(map(str, found)) or "nothing"
            raise InputError(f"{self.name}: {how} several metrics ({several}); `metric` says which counts")
        if name not in found:
            there = ", ".join(map(str, found)) or "nothing"
            raise InputError(f"{self.name}: {how} no {name!r}, but {there}; `metric` names one of these")
        return as_number(found[name], f"{self.name}: {how} as {name!r}")


class _Generator:
    """A generator, and the steps it was asked for."""

    def __init__(self, code: Code, trial: int) -> None:
        self._code, self._trial = code, trial
        self._config: dict[str, Any] = {}
        self._going: Generator[Any, None, None] | None = None
        self._intervals: list[tuple[int, Hyper]] = []
        self.last: Any = None
        self.ended: int | None = None
        """Steps of the last interval that were trained when the function returned; None if it has not."""

    def advance(self, steps: int, hyper: Hyper) -> None:
        """Train further steps with these hyper-parameters, or fewer if the function returns."""
        self._config.clear()
        self._config.update(self._code.config(hyper))
        if self._going is None:
            self._going = self._code.call(self._config, self._trial)
            if not hasattr(self._going, "__next__"):
                raise InputError(
                    f"{self._code.name}: is no generator; `yield` a dictionary of metrics each step"
                )
        for step in range(steps):
            try:
                self.last = next(self._going)
            except StopIteration:
                self.ended = step
                break
        if self._intervals and self._intervals[-1][1] == hyper:
            steps += self._intervals.pop()[0]
        self._intervals.append((steps, dict(hyper)))

    def content(self) -> bytes:
        return json.dumps({"trial": self._trial, "parts": self._intervals}).encode()

    @classmethod
    def rebuilt(cls, code: Code, content: bytes) -> "_Generator":
        found = json.loads(content)
        again = cls(code, found["trial"])
        for steps, hyper in found["parts"]:
            again.advance(steps, hyper)
        return again


class FunctionTrial:
    """A trial that is a generator function. Recent generators are kept, others are run again."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._now = _Generator(code, 0)
        self._kept: OrderedDict[bytes, _Generator] = OrderedDict()
        """Saved content → the generator, which has not advanced since."""

    def begin(self, trial: int) -> None:
        self._now = _Generator(self._code, trial)

    def load(self, content: bytes) -> None:
        self._now = self._kept.get(content) or _Generator.rebuilt(self._code, content)

    def save(self) -> bytes:
        content = self._now.content()
        self._kept[content] = self._now
        while len(self._kept) > LIVE:
            self._kept.popitem(last=False)
        return content

    def train(self, steps: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        self._kept.pop(self._now.content(), None)
        self._now.advance(steps, hyper)

    def evaluate(self) -> float:
        return self._code.worth(self._now.last, "yielded")

    @property
    def ended(self) -> int | None:
        """Steps of the last interval that were trained when the function returned; None if it has not."""
        return self._now.ended

    def opened(self) -> Any:
        """Return what was yielded last."""
        return self._now.last


class ClassTrial:
    """A trial that is a class with step, save and load. For other hyper-parameters a new object is made."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self.begin(0)

    def begin(self, trial: int) -> None:
        self._trial, self._hyper, self._last = trial, dict[str, Any](), None
        self._object: Any = None
        self._saved: Any = None

    def load(self, content: bytes) -> None:
        self._trial, self._hyper, self._last, self._saved = pickle.loads(content)
        self._object = None

    def save(self) -> bytes:
        import cloudpickle

        state = self.opened().save()
        content: bytes = cloudpickle.dumps((self._trial, self._hyper, self._last, (state,)))
        return content

    def train(self, steps: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        if self._object is not None and hyper != self._hyper:
            self.load(self.save())
        self._hyper = dict(hyper)
        trained = self.opened()
        for _ in range(steps):
            self._last = trained.step()

    def evaluate(self) -> float:
        return self._code.worth(self._last, "step returned")

    def opened(self) -> Any:
        """Return the user's object."""
        if self._object is None:
            self._object = self._code.call(self._code.config(self._hyper), self._trial)
            if self._saved is not None:
                self._object.load(self._saved[0])
        return self._object


def own_code(settings: Mapping[str, Any], seed: int) -> FunctionTrial | ClassTrial:
    """Return the trial of the code in a file of the run, or in the settings if Ray has to send it."""
    return trial_of(*read_code(settings), seed)


def read_code(settings: Mapping[str, Any]) -> tuple[Any, str, Choices]:
    """Return the user's code, the metric that counts, and the values of words.

    Raises InputError if the file is not the one that the run began with.
    """
    file = Path(settings["file"])
    try:
        content = b64decode(settings["content"]) if "content" in settings else file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); it is what the run trains") from None
    if hashlib.sha256(content).hexdigest() != settings["sha256"]:
        raise InputError(f"{file}: is not what the run began with; bring it back, or begin anew")
    paths, packed = pickle.loads(content)
    sys.path += [path for path in paths if path not in sys.path]
    try:
        train, choices = pickle.loads(packed)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{file}: cannot be loaded: {error}; install it where it is trained") from error
    return train, settings.get("metric", ""), choices


def trial_of(train: Any, metric: str, choices: Choices, seed: int) -> FunctionTrial | ClassTrial:
    """Return the trial of a function or a class."""
    code = Code(train, metric, seed, choices)
    return ClassTrial(code) if inspect.isclass(train) else FunctionTrial(code)


def is_trained_by_steps(found: object) -> bool:
    """Return whether it is a class with step, save and load, or a generator function of `config`."""
    if inspect.isclass(found):
        return all(inspect.isfunction(getattr(found, name, None)) for name in METHODS)
    return inspect.isgeneratorfunction(found) and next(iter(_parameters(found)), "") == "config"


def check_trained(train: Any) -> None:
    """Raise InputError, which says what is missing, if it cannot be trained."""
    if inspect.isclass(train):
        for name in METHODS:
            if not callable(getattr(train, name, None)):
                written = f"def {name}(self{', state' if name == 'load' else ''})"
                raise InputError(f"{train.__name__}: cannot be trained: it has no {name}; write {written}")
    elif not callable(train):
        raise InputError(
            f"train is a {type(train).__name__}; give a function of a config that yields metrics, or a class "
            "with step, save and load"
        )
    if not _takes_config(train):
        raise InputError(
            f"{train.__name__}: cannot be called with a config alone; write it with one argument"
        )


def _takes_config(train: Callable[..., Any]) -> bool:
    try:
        inspect.signature(train).bind({}, **({"seed": 0} if "seed" in _parameters(train) else {}))
    except TypeError:
        return False
    except ValueError:  # built in: it does not say
        return True
    return True


def _parameters(train: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(train).parameters
    except (TypeError, ValueError):
        return {}
