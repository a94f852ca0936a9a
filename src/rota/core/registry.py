"""Classes and functions by name: rota's own, and others as `module:Class` or `path/to/file.py:Class`."""

import hashlib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from rota.core.errors import ConfigError, unknown

PACKAGE = __name__.partition(".")[0]
PREFIX = "rota_outside_"
"""Begins the name under which a module is known that was loaded from a file."""
SUFFIX = ".py"
INSTALLED = "site-packages"


@dataclass(frozen=True, slots=True)
class ClassContract:
    """What a class must have to fit in one place of rota."""

    what: str
    """`scheduler`, `allocation` …"""
    base: str
    """The class to derive from, which has all of it but the methods."""
    methods: dict[str, tuple[str, ...]]
    """Name → what it is called with, besides itself."""
    attributes: tuple[str, ...] = field(default=())


def is_outside(name: str) -> bool:
    """Whether a name is that of a class outside the package."""
    return ":" in name


def find_class(name: str, seam: ClassContract) -> Any:
    """Return the class behind `module:Class` or `file.py:Class`; an error says what it lacks to fit."""
    found = _find(name, "class", inspect.isclass)
    check_class(found, seam, name)
    return found


def find_function(name: str) -> Any:
    """Return the function behind `module:function` or `file.py:function`."""
    return _find(name, "function", inspect.isfunction)


def check_class(found: Any, seam: ClassContract, name: str) -> None:
    """Raise an error that says what is missing if a class does not fit."""
    if not inspect.isclass(found):
        raise ConfigError(f"{name}: is not a class, but {type(found).__name__}; name a class")
    no = f"{name}: is not {_a(seam.what)}"
    advice = f"derive it from {seam.base}" if seam.base else f"write a class of {_a(seam.what)}"
    for method, arguments in seam.methods.items():
        written = f"def {method}({', '.join(('self', *arguments))})"
        function = getattr(found, method, None)
        if not callable(function) or getattr(function, "__isabstractmethod__", False):
            raise ConfigError(f"{no}: it has no {method}; write {written}")
        if not _takes(function, len(arguments)):
            raise ConfigError(f"{no}: {method} cannot be called so; write {written}")
    for attribute in seam.attributes:
        if not hasattr(found, attribute):
            raise ConfigError(f"{no}: it has no {attribute!r}; {advice}")


def name_of(found: type) -> str:
    """Return what a class from outside is called: its `name`, else the name of the class in kebab-case."""
    name = getattr(found, "name", None)
    if isinstance(name, str):
        return name
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", "-", found.__name__)
    return words.strip("-").lower()


def placed_name(name: str, folder: Path) -> str:
    """The same class, if it is in a file, by a path that starts in this folder; other names as they are."""
    where, _, attribute = name.rpartition(":")
    return f"{folder / where}:{attribute}" if where.endswith(SUFFIX) else name


def load_file(path: Path) -> ModuleType:
    """Import a file as a module of its own; the same content at the same place is imported once."""
    file = path.expanduser().resolve()
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    digest = hashlib.sha256(str(file).encode() + b"\0" + content).hexdigest()[:12]
    name = f"{PREFIX}{re.sub(r'[^0-9A-Za-z_]', '_', file.stem)}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path}: is not a file of Python; name one that ends in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses and pickles look for it
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # as for a script: what lies beside it can be imported
    try:
        exec(compile(content, str(file), "exec"), module.__dict__)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"{path}: cannot be loaded: {told(error, file)}") from error
    return module


def files_of(found: type) -> list[Path]:
    """Return the files loaded by `load_file` that an object of this class needs to be unpickled elsewhere."""
    names = {base.__module__ for base in found.__mro__}
    return [Path(str(sys.modules[name].__file__)) for name in names if name.startswith(PREFIX)]


def sources(module: str) -> list[Path]:
    """Return the files that a module outside consists of; none for one of the package or of Python.

    These are its own file and all that is imported by now from its folder or, of a package, from the folder
    of that package.
    """
    top = module.partition(".")[0]
    if top == PACKAGE or top in sys.stdlib_module_names or module not in sys.modules:
        return []
    file = getattr(sys.modules[module], "__file__", None)
    if file is None or not Path(file).is_file():
        return []
    folder = _top(Path(file).resolve())
    found = {Path(file).resolve()}
    if folder.name == INSTALLED:  # what else is installed has nothing to do with it
        return sorted(found)
    for other in list(sys.modules.values()):
        beside = getattr(other, "__file__", None)
        if isinstance(beside, str) and beside.endswith(SUFFIX):
            path = Path(os.path.realpath(beside))
            if folder in path.parents and path.is_file():
                found.add(path)
    return sorted(found)


def _a(what: str) -> str:
    """The word with its article."""
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


def _top(file: Path) -> Path:
    """The folder of a file or, if it is in a package, of the whole package."""
    folder = file.parent
    while (folder / "__init__.py").is_file() and (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _find(name: str, what: str, is_one: Callable[[object], bool]) -> Any:
    """What a name stands for; if it is not there, an error lists what is of that sort."""
    where, _, attribute = name.rpartition(":")
    module = load_file(Path(where)) if where.endswith(SUFFIX) else _import(where, name, what)
    found = getattr(module, attribute, None)
    if found is None:
        own = [
            key
            for key, value in vars(module).items()
            if is_one(value) and getattr(value, "__module__", "") == module.__name__
        ]
        there = f"it has {', '.join(own)}" if own else f"it has no {what} at all"
        raise ConfigError(f"{name}: no {what} {attribute!r} in {where}; {there}")
    return found


def _import(module: str, name: str, what: str) -> ModuleType:
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", module):
        it = "Class" if what == "class" else what
        raise ConfigError(f"{name!r}: not the name of a {what}; write module:{it} or path/to/file.py:{it}")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise ConfigError(f"{name}: {module} cannot be imported: {error}") from error
        raise ConfigError(f"{name}: no module {module!r}; install it, or name its file") from None
    except Exception as error:
        raise ConfigError(f"{name}: {module} cannot be imported: {told(error)}") from error


def told(error: Exception, file: Path | None = None) -> str:
    """Say what went wrong, and in which line of the file."""
    lines = [error.lineno] if isinstance(error, SyntaxError) else []
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    where = f"line {lines[-1]}: " if lines and lines[-1] else ""
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{where}{type(error).__name__}: {said}"


def _takes(function: Any, arguments: int) -> bool:
    """Whether a method can be called with itself and so many arguments."""
    try:
        inspect.signature(function).bind(*range(arguments + 1))
    except TypeError:
        return False
    except ValueError:  # built in: it does not say
        return True
    return True


@dataclass(frozen=True, slots=True)
class Registry:
    """What can be named in one place of rota."""

    seam: ClassContract
    known: Mapping[str, str]
    """Name → `module:Class`."""

    def find(self, name: str) -> Any:
        """Return the class behind a name; only its own module is imported."""
        if is_outside(name):
            return find_class(name, self.seam)
        if name not in self.known:
            raise ConfigError(unknown(self.seam.what, name, self.known))
        module, attribute = self.known[name].split(":")
        return getattr(import_module(module), attribute)

    def own_name(self, found: type) -> str | None:
        """Return the name of a class of rota's; none if it is not."""
        named = f"{found.__module__}:{found.__qualname__}"
        return next((name for name, where in self.known.items() if where == named), None)
