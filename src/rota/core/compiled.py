"""Numba's compiler as a decorator, with a cache that notices when any of our sources changes.

Numba's own cache checks only the file of the function itself, but our kernels compile in constants of other
files (the order of columns, the kinds of events) and the code of other kernels. So the cache is in a folder
named after a digest of all sources that matter: those of `core`, and those that contain a kernel. The folder
is outside the package, which may be read-only, and all checkouts and installations of the same sources share
it. What one process compiles, others wait for. A kernel from a file outside the package has a folder of its
own, named after a digest of that file and its neighbours.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numba.extending
from numba.core.caching import UserProvidedCacheLocator
from numba.core.compiler_lock import global_compiler_lock

from rota.core.registry import sources

carray: Any = numba.carray  # type: ignore[attr-defined]
intrinsic: Any = numba.extending.intrinsic

PACKAGE = Path(__file__).parents[1]
KEPT = 4  # caches of other versions that are kept
KEPT_OUTSIDE = 16  # the same for files outside the package


def kernel(function: Callable[..., Any], *, nogil: bool = False, allocates: bool = True) -> Any:
    """Compile a function when it is first called, or load it from the cache.

    With `nogil`, Python threads run while it does. Without `allocates` it must make no arrays, nor call what
    does: then no references are counted, which takes most of the time where each step is small.
    """
    options: dict[str, Any] = {"nogil": nogil, "_nrt": allocates}
    folder = _folder_for(function)
    if folder is None:
        return numba.njit(**options)(function)
    config: Any = numba.config
    before = config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES
    config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = str(folder), f"{__name__}.{CacheLocator.__name__}"
    try:
        dispatcher: Any = numba.njit(cache=True, **options)(function)
    finally:
        config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = before
    lock = folder / f"{function.__module__}.{function.__name__}.lock"
    dispatcher.compile = _one_at_a_time(dispatcher.compile, lock)
    return dispatcher


class CacheLocator(UserProvidedCacheLocator):
    """A place for the compiled code of a function that does not depend on where the package is installed."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Return a folder below that of these sources."""
        folder = Path(py_file).absolute().parent
        if PACKAGE in (folder, *folder.parents):
            return "-".join(folder.relative_to(PACKAGE.parent).parts)
        return hashlib.sha256(str(folder).encode()).hexdigest()[:16]


def _one_at_a_time(compile_kernel: Callable[..., Any], lock: Path) -> Callable[..., Any]:
    """Return what compiles a kernel or loads it, but not while another process compiles the same one.

    Kernels that it calls are compiled meanwhile; as none calls itself, nobody waits in a circle.
    """

    def compile_alone(*arguments: Any) -> Any:
        with global_compiler_lock, _locked(lock):
            return compile_kernel(*arguments)

    return compile_alone


_held: set[Path] = set()


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Keep other processes out, where files can be locked; the same process may enter again."""
    if file in _held:
        yield
        return
    _held.add(file)
    with ExitStack() as stack:
        stack.callback(_held.discard, file)
        with suppress(OSError):
            fcntl.flock(stack.enter_context(file.open("w")), fcntl.LOCK_EX)
        yield


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a small function into each of its callers, which then pass it nothing.

    A call of a kernel passes every field of every array: with a tuple of many arrays, that takes longer than
    what a small function does with them.
    """
    return numba.njit(inline="always")(function)


def native_address(function: Any, *arguments: Any) -> tuple[int, Any]:
    """Compile a kernel for these types; return the address of its code, and the type that it returns.

    Compiled code calls it there (`rota.core.calls`): a kernel that is called by name is compiled once more in
    each of its callers.
    """
    function.compile(arguments)
    compiled = function.overloads[arguments]
    name = compiled.fndesc.llvm_func_name
    return compiled.library.get_pointer_to_function(name), compiled.signature.return_type


def _folder_for(function: Callable[..., Any]) -> Path | None:
    """Return the cache folder of a function; None if it is from no file, as in a notebook."""
    if PACKAGE in Path(function.__code__.co_filename).parents:
        return cache_folder()
    files = sources(function.__module__)
    if not files:
        return None
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    folder = cache_folder() / "outside" / digest.hexdigest()[:16]
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        _prune(folder.parent, KEPT_OUTSIDE)
    return folder


@cache
def cache_folder() -> Path:
    """Return the folder with the compiled code of exactly these sources."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(PACKAGE.rglob("*.py")):
        text = source.read_bytes()
        if PACKAGE / "core" in source.parents or b"@kernel" in text:
            digest.update(text)
    home = Path(os.environ.get("ROTA_CACHE") or Path.home() / ".cache" / "rota") / "kernels"
    folder = home / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    except OSError:
        return _temporary(folder.name)
    with suppress(OSError):  # another process may be pruning too
        _prune(home)
    return folder


def _temporary(name: str) -> Path:
    """Return a folder that only this user can write to, if there is no writable home."""
    folder = Path(tempfile.gettempdir()) / f"rota-kernels-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            raise PermissionError
        (folder / name).mkdir(exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="rota-kernels-"))
    return folder / name


def _prune(home: Path, kept: int = KEPT) -> None:
    """Remove the least recently used caches."""
    by_age = sorted(
        (folder for folder in home.iterdir() if folder.is_dir()), key=lambda folder: folder.stat().st_mtime
    )
    for folder in by_age[: -kept - 1]:
        shutil.rmtree(folder, ignore_errors=True)
