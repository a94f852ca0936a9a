"""Inputs of a simulation: traces, clusters and schedulers by name, from files, or as objects."""

import hashlib
import inspect
import operator
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rota.config.bind import bind, made
from rota.config.load import placed, read
from rota.config.renamed import with_new_keys
from rota.core.cluster import Cluster
from rota.core.errors import ConfigError, InputError, unknown
from rota.core.files import located
from rota.core.policy import Policy
from rota.core.registry import check_class, sources
from rota.policies.cluster.registry import SEAM, canonical, outside_name, own_name, scheduler_class
from rota.simulator.jobs_config import ClusterConfig
from rota.workload import formats
from rota.workload.jobs import Workload
from rota.workload.synthetic import SyntheticConfig, generate


def whole(name: str, value: Any) -> int:
    """Return a whole number, of whatever type; an error that names it if it is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise ConfigError(f"{name} is {value!r}; give a whole number") from None


def seeds_of(given: int | Iterable[int]) -> list[int]:
    """Return the seeds: so many from 0 on, or those that are given."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        seeds = [whole("seeds: one", each) for each in given]
    else:
        seeds = list(range(whole("seeds", given)))
    if not seeds:
        raise ConfigError("seeds is empty; give at least one")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds has one twice: {seeds}")
    if min(seeds) < 0:
        raise ConfigError(f"seeds has {min(seeds)}; they are 0 or more")
    return seeds


def table_of(name: str, given: Any) -> dict[str, Any]:
    """Return a dictionary of settings; an error if it is something else."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ConfigError(f"{name} is a {type(given).__name__}; give a dictionary")
    return with_new_keys(given)


def read_cluster_toml(path: str | os.PathLike[str]) -> Cluster:
    """Return the cluster of a file: its table `[cluster]`, or all of it if it has no such table."""
    file = Path(path)
    table = read(file)
    found = table.get("cluster", table)
    if not isinstance(found, dict):
        raise ConfigError(f"{file}: cluster is not a table")
    where = f"{file}: cluster" if "cluster" in table else file
    return bind(ClusterConfig, placed(found, ("file",), file.parent), where).build()


def read_trace(
    path: str | os.PathLike[str],
    format: str | Callable[..., Any] | None = None,
    *,
    seed: int = 0,
    draw_models: bool = False,
    startup_s: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Workload:
    """Read a trace of jobs from a file.

    Formats are `csv` (rota's own), `muri`, `philly`, `azure`, `gavel`, `pollux`, `helios` and `alibaba`; the
    format is guessed from the file unless it is given. It may also be a function, or the name of one
    (`"mine.py:read_mine"`), that takes an open file, and `options` by their names, and gives the jobs: a
    dictionary each, with the columns of `csv`, or a whole `Workload`. A job takes as long as the trace says,
    and starting it costs nothing unless the trace says so or `startup_s` is given. With `draw_models`, jobs
    whose stages are not known get models of rota's, drawn from `seed`: then starts cost what they cost these
    models, and schedulers that share GPUs can share them. What was drawn is said in the `notes` of the
    workload. Files may be compressed (.gz, .zst), and pipes are read, too. A trace that comes with rota,
    `config/workload/shipped.csv`, is found from any folder that has no file of that name. Raises
    `rota.RotaError` if the file cannot be read.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import rota
    >>> rows = "id,submit_s,gpus,duration_s,model,priority\\na,0,1,600,bert,0\\nb,10,2,300,vgg16,1\\n"
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "two.csv")
    ...     _ = file.write_text(rows)
    ...     rota.read_trace(str(file))
    Workload('two', 2 jobs)

    >>> def read_lines(file, gpus=1):
    ...     for line in file:
    ...         name, minute, minutes = line.split()
    ...         yield {
    ...             "id": name, "submit_s": 60 * int(minute), "gpus": gpus, "duration_s": 60 * int(minutes)
    ...         }
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "mine.txt")
    ...     _ = file.write_text("a 0 30\\nb 5 10\\n")
    ...     rota.read_trace(file, read_lines, options={"gpus": 2}).duration_s.tolist()
    [1800.0, 600.0]
    """
    jobs = formats.read(located(Path(path)), format, seed, draw_models, options=options)
    return jobs if startup_s is None else jobs.with_startup(startup_s)


def synthetic_trace(**settings: Any) -> Workload:
    """Make up a workload from a seed: arrivals, heavy-tailed durations, gang sizes and models.

    `jobs` (1000), `gpus` (64: the cluster that the load refers to), `load` (0.85), `arrivals` (`bursty` or
    `poisson`), `median_s` (1800) and `seed` (0) are the settings that matter most; the others are the fields
    of `rota.workload.synthetic.SyntheticConfig`. The same settings give the same workload.

    >>> import rota
    >>> rota.synthetic_trace(jobs=20, gpus=8, load=0.5, seed=3)
    Workload('synthetic-3', 20 jobs)
    """
    known = SyntheticConfig.__dataclass_fields__
    for name in settings:
        if name not in known:
            raise ConfigError(unknown("setting", name, known))
    return generate(SyntheticConfig(**settings))


def files_behind(things: Iterable[Any]) -> list[Path]:
    """Return the files that classes, functions or objects from outside the package consist of.

    The script that is being run is left out: it says what is to be run.
    """
    kinds = [each if isinstance(each, type) or hasattr(each, "__code__") else type(each) for each in things]
    modules = {base.__module__ for kind in kinds for base in getattr(kind, "__mro__", (kind,))}
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    found = {file for module in modules - {"__main__", "builtins"} for file in sources(module)}
    return sorted(found - {Path(script).resolve()} if script else found)


def code_of(things: Iterable[Any]) -> dict[str, str]:
    """Return the digest of each of these files."""
    return {str(file): digest_of(file) for file in files_behind(things)}


def check_code(code: Mapping[str, str]) -> None:
    """Raise an error if one of the files is not what it was."""
    for name, digest in code.items():
        file = Path(name)
        if not file.is_file() or digest_of(file) != digest:
            what = "has been changed since" if file.is_file() else "is gone, which was there when"
            raise InputError(f"{file}: {what} the run began; bring back what it was, or begin anew elsewhere")


def digest_of(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


PATHS = ("workload.trace", "workload.profiles", "workload.history", "cluster.file", "options.learned.agent")
"""Keys of a configuration that are paths."""
NAMES = ("schedulers", "scheduler", "workload.format")
"""Keys of a configuration that name classes or functions, perhaps in files."""


class NamedPolicy(NamedTuple):
    """A scheduler, and what it is called."""

    name: str
    policy: Policy


def schedulers(
    names: Sequence[str], defaults_for: Callable[[Any], Mapping[str, Any]], options: Any, where: str
) -> dict[str, Policy]:
    """Return each scheduler with its options, by its proper name."""
    proper = {name: canonical(name) for name in names}
    given, policies = _options(options, where, proper.values()), dict[str, Policy]()
    for spec, name in proper.items():
        if name in policies:
            raise ConfigError(f"{where}: schedulers: two are called {name}; give one of the classes a `name`")
        chosen = scheduler_class(spec)
        policies[name] = made(
            chosen, {**defaults_for(chosen), **given.get(name, {})}, f"{where}: options.{name}"
        )
    return policies


def named_policy(given: Any, options: Mapping[str, Any] | None = None) -> NamedPolicy:
    """Return a scheduler that was given as a name, as a class or as an object, and its name.

    `options` are for a name or a class.
    """
    if isinstance(given, str):
        name = canonical(given)
        return NamedPolicy(name, made(scheduler_class(given), options or {}, f"options.{name}"))
    found = given if inspect.isclass(given) else type(given)
    check_class(found, SEAM, found.__name__)
    name = own_name(found) or outside_name(found, found.__name__)
    if inspect.isclass(given):
        return NamedPolicy(name, made(given, options or {}, f"options.{name}"))
    if options:
        raise ConfigError(f"options: {name} is an object, which has its options; leave them out")
    return NamedPolicy(name, given)


def settings(policy: Any) -> str:
    """Return what a policy is and which options it has, as text that is the same for equal ones."""
    if is_dataclass(policy):
        return repr(policy)
    return f"{type(policy).__qualname__}({sorted(getattr(policy, '__dict__', {}).items())})"


def _options(options: Any, where: str, known: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the tables of options by the proper names of the schedulers."""
    if not isinstance(options, dict):
        raise ConfigError(f"{where}: options is not a table")
    known, given = set(known), dict[str, dict[str, Any]]()
    for alias, table in options.items():
        name = alias if alias in known else canonical(alias)
        if not isinstance(table, dict):
            raise ConfigError(f"{where}: options.{alias} is not a table")
        if name in given:
            raise ConfigError(f"{where}: options: {name} has options under two names; give them under one")
        given[name] = table
    return given
