"""How good something is, as a number."""

import hashlib
import inspect
import json
import pickle
import sys
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rota.core.errors import InputError
from rota.core.population.events import Hyper


def as_number(value: Any, how: str) -> float:
    """Return a metric as a float; an error that says where it comes from if it is no number."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        what = "nothing" if value is None else f"{str(value)[:60]!r}, a {type(value).__name__}"
        raise InputError(f"{how} {what}; it must be a number (NaN if nothing is measured)") from None


NAME = "rota.execution.own_code:own_code"
"""Of the function that makes trials of what `rota.tune` was given."""
METHODS = ("step", "save", "load")
LIVE = 8
"""Generators that a worker keeps: those are not replayed."""
Choices = Mapping[str, Mapping[str, Any]]
"""Hyper-parameter → word that stands for a value → the value, where that is neither a number nor a word."""


class OwnTrial(Protocol):
    """One of the user's trials, as a worker trains it."""

    def begin(self, trial: int) -> None: ...
    def load(self, content: bytes) -> None: ...
    def save(self) -> bytes: ...
    def train(self, steps: int, hyper: Hyper, changes: tuple[str, ...]) -> None: ...
    def evaluate(self) -> float: ...
    def opened(self) -> Any:
        """What a user gets of it: the object, or what was yielded last."""


class Code:
    """What is trained, how it is called, and which of its metrics counts."""

    def __init__(self, train: Any, metric: str, seed: int, choices: Choices | None = None) -> None:
        self.train, self.metric, self._seed = train, metric, seed
        self._choices = choices or {}
        self._takes_seed = "seed" in _parameters(train)
        self.name = getattr(train, "__name__", type(train).__name__)

    def call(self, config: dict[str, Any], trial: int) -> Any:
        """Call it with the configuration of a trial; with a seed of the trial's own, if it takes one."""
        if not self._takes_seed:
            return self.train(config)
        return self.train(config, seed=int(np.random.SeedSequence((self._seed, trial)).generate_state(1)[0]))

    def config(self, hyper: Hyper) -> dict[str, Any]:
        """Hyper-parameters as the user wrote them."""
        return {name: self._choices.get(name, {}).get(value, value) for name, value in hyper.items()}

    def worth(self, found: Any, how: str) -> float:
        """The metric that counts, of a dictionary of them; or what there is, if that is a number."""
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
    """A generator that has been asked for some steps."""

    def __init__(self, code: Code, trial: int) -> None:
        self._code, self._trial = code, trial
        self._config: dict[str, Any] = {}
        self._going: Generator[Any, None, None] | None = None
        self._parts: list[tuple[int, Hyper]] = []
        self.last: Any = None
        self.ended: int | None = None
        """Steps of the last part that were trained when the function returned; None if it has not."""

    def advance(self, steps: int, hyper: Hyper) -> None:
        """Go on with these hyper-parameters; a function that returns has had its steps."""
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
        if self._parts and self._parts[-1][1] == hyper:
            steps += self._parts.pop()[0]
        self._parts.append((steps, dict(hyper)))

    def content(self) -> bytes:
        return json.dumps({"trial": self._trial, "parts": self._parts}).encode()

    @classmethod
    def replayed(cls, code: Code, content: bytes) -> "_Generator":
        found = json.loads(content)
        again = cls(code, found["trial"])
        for steps, hyper in found["parts"]:
            again.advance(steps, hyper)
        return again


class FunctionTrial:
    """A trial that is a generator function. The last few generators are kept, the others are replayed."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._now = _Generator(code, 0)
        self._kept: OrderedDict[bytes, _Generator] = OrderedDict()
        """By what was saved of them; none of them has gone on since."""

    def begin(self, trial: int) -> None:
        self._now = _Generator(self._code, trial)

    def load(self, content: bytes) -> None:
        self._now = self._kept.get(content) or _Generator.replayed(self._code, content)

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
        """Steps of the last part that were trained when the function returned; None if it has not."""
        return self._now.ended

    def opened(self) -> Any:
        return self._now.last


class ClassTrial:
    """A trial that is a class with step, save and load. With other hyper-parameters it is made anew."""

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
        if self._object is None:
            self._object = self._code.call(self._code.config(self._hyper), self._trial)
            if self._saved is not None:
                self._object.load(self._saved[0])
        return self._object


def own_code(settings: Mapping[str, Any], seed: int) -> OwnTrial:
    """Return what trains the code in the file of a run; Ray may have to be sent what is in it."""
    return trial_of(*read_code(settings), seed)


def read_code(settings: Mapping[str, Any]) -> tuple[Any, str, Choices]:
    """Return what is trained, the metric that counts, and what words stand for.

    It is what was written when the run began, or an error.
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


def trial_of(train: Any, metric: str, choices: Choices, seed: int) -> OwnTrial:
    """Return what trains a function or a class."""
    code = Code(train, metric, seed, choices)
    return ClassTrial(code) if inspect.isclass(train) else FunctionTrial(code)


def is_trained_by_steps(found: object) -> bool:
    """Whether it is a class with step, save and load, or a generator function of `config`."""
    if inspect.isclass(found):
        return all(inspect.isfunction(getattr(found, name, None)) for name in METHODS)
    return inspect.isgeneratorfunction(found) and next(iter(_parameters(found)), "") == "config"


def check_trained(train: Any) -> None:
    """Raise an error that says what is missing if it cannot be trained."""
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
