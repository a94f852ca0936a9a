"""Classes and functions by name: rota's own, or others as `module:Class` or `path/to/file.py:Class`."""

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
"""Prefix of the names of modules that were loaded from files."""
SUFFIX = ".py"
INSTALLED = "site-packages"


@dataclass(frozen=True, slots=True)
class ClassContract:
    """Requirements on a plug-in class."""

    what: str
    """Kind of plug-in: `scheduler`, `allocation` …"""
    base: str
    """Base class to derive from, which has everything but the methods."""
    methods: dict[str, tuple[str, ...]]
    """Method name → names of its arguments after `self`."""
    attributes: tuple[str, ...] = field(default=())


def is_outside(name: str) -> bool:
    """Return whether a name is that of a class outside the package."""
    return ":" in name


def find_class(name: str, seam: ClassContract) -> Any:
    """Return the class behind `module:Class` or `file.py:Class`. Raises ConfigError if it lacks anything."""
    found = _find(name, "class", inspect.isclass)
    check_class(found, seam, name)
    return found


def find_function(name: str) -> Any:
    """Return the function behind `module:function` or `file.py:function`."""
    return _find(name, "function", inspect.isfunction)


def check_class(found: Any, seam: ClassContract, name: str) -> None:
    """Raise ConfigError if a class does not meet a contract; the message says what is missing."""
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
            raise ConfigError(f"{no}: {method} has the wrong arguments; write {written}")
    for attribute in seam.attributes:
        if not hasattr(found, attribute):
            raise ConfigError(f"{no}: it has no {attribute!r}; {advice}")


def name_of(found: type) -> str:
    """Return the name of a plug-in class: its attribute `name`, or else the class name in kebab-case."""
    name = getattr(found, "name", None)
    if isinstance(name, str):
        return name
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", "-", found.__name__)
    return words.strip("-").lower()


def placed_name(name: str, folder: Path) -> str:
    """Return the name with the path of its file, if it has one, taken relative to a folder."""
    where, _, attribute = name.rpartition(":")
    return f"{folder / where}:{attribute}" if where.endswith(SUFFIX) else name


def load_file(path: Path) -> ModuleType:
    """Import a file as a separate module; the same content at the same path is imported once."""
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
        raise ConfigError(f"{path}: is not a Python file; name one that ends in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look here
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # as for a script, so that its neighbours can be imported
    try:
        exec(compile(content, str(file), "exec"), module.__dict__)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"{path}: cannot be loaded: {describe_error(error, file)}") from error
    return module


def files_of(found: type) -> list[Path]:
    """Return the files loaded by `load_file` that are needed to unpickle an object of a class elsewhere."""
    names = {base.__module__ for base in found.__mro__}
    return [Path(str(sys.modules[name].__file__)) for name in names if name.startswith(PREFIX)]


def sources(module: str) -> list[Path]:
    """Return the source files of a module outside the package; none for the package or the standard library.

    These are its own file and all that is imported so far from its folder or, for a package, from the folder
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
    if folder.name == INSTALLED:  # other installed modules do not belong to it
        return sorted(found)
    for other in list(sys.modules.values()):
        beside = getattr(other, "__file__", None)
        if isinstance(beside, str) and beside.endswith(SUFFIX):
            path = Path(os.path.realpath(beside))
            if folder in path.parents and path.is_file():
                found.add(path)
    return sorted(found)


def _a(what: str) -> str:
    """Return the word with its article."""
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


def _top(file: Path) -> Path:
    """Return the folder of a file or, if it is in a package, of the whole package."""
    folder = file.parent
    while (folder / "__init__.py").is_file() and (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _find(name: str, what: str, is_one: Callable[[object], bool]) -> Any:
    """Return the object behind a name; if there is none, the error lists the candidates."""
    where, _, attribute = name.rpartition(":")
    module = load_file(Path(where)) if where.endswith(SUFFIX) else _import(where, name, what)
    found = getattr(module, attribute, None)
    if found is None:
        own = [
            key
            for key, value in vars(module).items()
            if is_one(value) and getattr(value, "__module__", "") == module.__name__
        ]
        there = f"it has {', '.join(own)}" if own else "it has none"
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
        raise ConfigError(f"{name}: {module} cannot be imported: {describe_error(error)}") from error


def describe_error(error: Exception, file: Path | None = None) -> str:
    """Return what went wrong, and in which line of the file."""
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
    """Return whether a method can be called with itself and a number of arguments."""
    try:
        inspect.signature(function).bind(*range(arguments + 1))
    except TypeError:
        return False
    except ValueError:  # built in, without a signature
        return True
    return True


@dataclass(frozen=True, slots=True)
class Registry:
    """Names of the plug-ins of one kind."""

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
        """Return the name of one of rota's own classes; None for any other."""
        named = f"{found.__module__}:{found.__qualname__}"
        return next((name for name, where in self.known.items() if where == named), None)
