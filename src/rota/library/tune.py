"""Code of the user's, trained as a population: hyper-parameters found on real machines."""

import hashlib
import inspect
import pickle
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Literal

import cloudpickle

from rota.config.load import merged
from rota.core.cluster import CPU, Cluster, own_cores
from rota.core.errors import ConfigError, InputError, RotaError
from rota.core.population.events import Event, TrialFailed
from rota.core.processes import stopping
from rota.execution.controller import PopulationOutcome, Watch
from rota.execution.folder import RealFolder, RunPaths
from rota.execution.local import is_missing
from rota.execution.own_code import NAME as OWN_CODE
from rota.execution.own_code import check_trained, read_code, trial_of
from rota.execution.status import PopulationStatus, best_checkpoint, read_best
from rota.execution.trainable import named
from rota.library.inputs import code_of, table_of, whole
from rota.library.population_run import PopulationRun, load_population
from rota.library.processes import pickle_by_value, progress_bar
from rota.library.real_run import POLICIES, RealRun, RunSpec, ordered
from rota.library.spaces import starts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TRAIN = "train.pkl"
"""A file in the folder of a run: what is trained."""
ENGINES = ("local", "ray", "slurm")
ASKED = (
    "population", "allocation", "evolution", "trial", "metric", "mode", "backend", "seed", "attempts",
)  # fmt: skip
"""Keys that must be the same when a run goes on."""
FOLDER = Path("results/tune")
"""Where runs go that are given no folder."""


@dataclass(frozen=True, slots=True)
class BestTrial:
    """The best report of all trials, and the checkpoint of it."""

    trial: int
    metric: float
    """What it reported, with the sign that the user gave it."""
    config: dict[str, Any]
    """Hyper-parameters of the trial."""
    _open: Callable[[], Any] = field(repr=False)

    def load(self) -> Any:
        """Return what was trained, as it was then.

        Of a class, an object with the state that `save` had returned; of a function, the metrics that it
        yielded.
        """
        return self._open()


class TuneResult:
    """The result of `rota.tune`: the best trial, all trials as a frame, figures and the run folder."""

    def __init__(self, folder: Path, order: RunSpec, status: PopulationStatus) -> None:
        self.folder = folder
        """The run folder; `rota status`, `rota plot` and `rota report` read it, too."""
        self._order, self._status = order, status

    @cached_property
    def best(self) -> BestTrial:
        """The trial that reported the best metric."""
        number, status = self._status.best, self._status
        if number is None:
            raise RotaError(f"{self.folder}: no trial reported a metric that is a number")
        metric = status.frame.sign * status.trials[number].best
        config = self._values(best_checkpoint(self._paths.journal).hyper)
        return BestTrial(number, metric, config, self._load_best)

    @property
    def _paths(self) -> RunPaths:
        return RealFolder(self.folder).paths(self._status.frame.seed)

    @cached_property
    def run(self) -> PopulationRun:
        """The population: timeline, metrics and frames."""
        return load_population(self.folder)

    @cached_property
    def trials(self) -> "pd.DataFrame":
        """A row per trial: its status, steps, metrics, hyper-parameters and, if it failed, its error."""
        frame = self.run.trials.droplevel("seed")
        for name in (column for column in frame.columns if column.startswith("config.")):
            frame[name] = [self._values({name[7:]: value})[name[7:]] for value in frame[name]]
        return frame

    def plot(self, name: str, file: str | Path | None = None) -> "Figure":
        """Draw a figure: `gantt`, `accuracy`, `idle` or `ratio`; with `file`, also write it there."""
        return self.run.plot(name, file)

    def report(self, file: str | Path, *, title: str = "") -> Path:
        """Write a page in HTML that shows the run, and return where it is."""
        return self.run.report(file, title=title)

    def _load_best(self) -> Any:
        trial = trial_of(*self._code(), self._order.config.seed)
        trial.load(read_best(self._paths).content)
        return trial.opened()

    def _code(self) -> tuple[Any, str, Mapping[str, Mapping[str, Any]]]:
        config, settings = self._order.config, dict(self._order.training)
        if config.trial != OWN_CODE:
            return named(config.trial), config.metric, {}
        train, _, meanings = read_code({**settings, "file": str(self.folder / settings["file"])})
        return train, config.metric, meanings

    def _values(self, hyper: Mapping[str, Any]) -> dict[str, Any]:
        """Return hyper-parameters as the user wrote them."""
        meanings = self._code()[2]
        return {name: meanings.get(name, {}).get(value, value) for name, value in hyper.items()}

    def __repr__(self) -> str:
        best = self._status.best
        said = "nothing measured" if best is None else f"best {self.best.metric:.6g} (trial {best})"
        return f"TuneResult({len(self._status.trials)} trials, {said}, {str(self.folder)!r})"

    def _repr_html_(self) -> str:
        frame = self.trials.sort_values("best_metric", ascending=self._status.frame.mode == "min")
        html: str = frame.head(20).to_html()
        return f"<p>{self!r}</p>{html}"


def tune(
    train: Any,
    space: Mapping[str, Any],
    *,
    metric: str = "",
    mode: Literal["max", "min"] = "max",
    trials: int = 8,
    steps: int = 100,
    interval: int = 1,
    target: float | None = None,
    cluster: Cluster | Mapping[str, Any] | None = None,
    backend: Literal["local", "ray", "slurm"] = "local",
    allocation: Any = "fifo",
    evolution: Any = "none",
    seed: int = 0,
    attempts: int = 3,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool | None = None,
    settings: Mapping[str, Any] | None = None,
) -> TuneResult:
    """Train a function or a class of yours as a population, and return what is best.

    `train` is a generator function of a dictionary of hyper-parameters that yields its metrics after each
    step (a dictionary, or one number); or a class that is made with such a dictionary and has `step()`, which
    returns metrics, `save()`, which returns all that is needed to go on, and `load(state)`; or the name of
    one (`"mine.py:train"`). If it takes a `seed`, it is given one. `space` says what hyper-parameters may be:
    `rota.Uniform`, `rota.LogUniform`, `rota.Choice`, a list, or a fixed value. `metric` names the one of the
    metrics that counts; more of it is better, with `mode="min"` less.

    Each of the `trials` is trained for `steps` steps, or until its function returns or its metric reaches
    `target`; it reports every `interval` steps. `evolution` (`"none"`, `"pbt"`, `"asha"`) and `allocation`
    (`"fifo"`, `"finish"`, `"learned"` …) are those of a simulation, and may be yours. A function is gone on
    from, after it was cloned or on another slot, by calling it again; a class is saved and loaded.

    It is trained on the slots of `cluster`: by default this machine with a slot per core. With the backend
    `"ray"` or `"slurm"`, `cluster` may also be the table `[ray]` or `[slurm]` of a configuration, as in
    docs/run-on-ray.md. The run is kept in the folder `out` (a new one in results/tune if not given), survives
    crashes, and goes on with `resume=True` or `rota run --resume`. A trial that failed `attempts` times is
    let go. `settings` are further keys of a configuration; `rota run --help-config` lists them.

    Raises `rota.RotaError` if something does not fit, or no trial reported anything.

    >>> from tempfile import TemporaryDirectory
    >>> import rota
    >>> def train(config):
    ...     for step in range(3):
    ...         yield {"accuracy": 1 - (config["lr"] - 0.1) ** 2 / (step + 1)}
    >>> with TemporaryDirectory() as folder:
    ...     found = rota.tune(
    ...         train, {"lr": [0.1, 0.5]}, metric="accuracy", trials=4, cluster=rota.Cluster.local(1),
    ...         out=f"{folder}/run",
    ...     )
    ...     found.best.metric, found.best.config, len(found.trials)
    (1.0, {'lr': 0.1}, 4)
    """
    if resume and out is None:
        raise ConfigError(f"resume: which run? Give its folder as out, one in {FOLDER}")
    trials, steps, interval = whole("trials", trials), whole("steps", steps), whole("interval", interval)
    table: dict[str, Any] = {
        "population": {"trials": trials, "steps": steps, "interval": min(interval, max(steps, 1))},
        "metric": metric,
        "mode": mode,
        "backend": backend,
        "seed": whole("seed", seed),
        "attempts": whole("attempts", attempts),
    }
    if target is not None:
        table["population"]["target"] = target
    files = dict[str, bytes]()
    parts = (_trained(train, space, files), _policies(allocation, evolution, files), _slots(cluster, backend))
    for part in (*parts, table_of("settings", settings)):
        table = merged(table, part)
    folder = Path(out) if out is not None else _new_folder(train)
    run = _begun(folder, table, files, [] if isinstance(train, str) else [train], resume=resume)
    return _carried_out(run, progress)


def _begun(
    folder: Path, table: Mapping[str, Any], files: Mapping[str, bytes], trained: list[Any], *, resume: bool
) -> RealRun:
    """Return a new run in this folder, or the one that is there."""
    objects = {
        f"{POLICIES}:{name}": policy for name, policy in pickle.loads(files.get(POLICIES, EMPTY)).items()
    }
    order = ordered(table, Path("rota.tune"), objects=objects)
    code = {**order.config.code, **code_of(trained)}
    order = replace(order, config=replace(order.config, code=code))
    there = RealFolder(folder).config.exists()
    if there and not resume:
        raise InputError(f"{folder}: has a run already; resume=True goes on with it, or choose another out")
    if not there:
        return RealRun.begin(order, folder, "Python rota.tune", files)
    found = RealRun.resume(folder, "Python rota.tune")
    changed = _differences(order, found.order)
    if changed:
        raise InputError(
            f"{folder}: the run there was begun with another {' and '.join(changed)}; give what it was, or "
            "another folder"
        )
    return found


EMPTY = pickle.dumps({})
MISUSED = f"{InputError.__module__}.{InputError.__name__}: "
"""How the last line of a traceback begins where rota refuses what the code gave it."""


def _differences(now: RunSpec, then: RunSpec) -> list[str]:
    """Return the keys that differ between what is asked for and a run that was begun."""
    changed = [name for name in ASKED if getattr(now.config, name) != getattr(then.config, name)]
    if now.training.get("source", "") != then.training.get("source", ""):
        changed.append("train")
    if (now.variant.settings(), now.variant.options) != (
        then.variant.settings(),
        then.variant.options,
    ):
        changed.append("policy, or options of one")
    if now.config.engine != then.config.engine:
        changed.append("cluster")
    return changed


def _carried_out(run: RealRun, progress: bool | None) -> TuneResult:
    population = run.order.config.population
    reports = population.trials * -(-population.steps // population.interval)
    with stopping() as stop, progress_bar(reports, "report", progress) as bar:
        outcomes = run.carry_out(lambda: stop.asked, lambda seed: _shown(bar))
    return _result(run, outcomes[-1])


def _shown(bar: Any) -> Watch:
    def watch(status: PopulationStatus, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, TrialFailed) and (wrong := _misused(event.why)):
                raise InputError(wrong)
        if status.best is not None:
            bar.set_postfix_str(f"best {status.frame.sign * status.trials[status.best].best:.4g}", False)
        bar.update(status.reports - bar.n)

    return watch


def _misused(why: str) -> str:
    """Return what is wrong with the user's code, which no further attempt can mend; else nothing."""
    last = why.strip().splitlines()[-1] if why.strip() else ""
    return last.removeprefix(MISUSED) if last.startswith(MISUSED) else ""


def _result(run: RealRun, outcome: PopulationOutcome) -> TuneResult:
    status, folder = outcome.status, run.folder.path
    if not outcome.complete:
        raise KeyboardInterrupt(f"stopped; go on with resume=True and out={str(folder)!r}")
    if status.best is None:
        failed = [each.why for each in status.failures]
        last = failed[-1].strip().splitlines()[-1] if failed else "all metrics are NaN"
        what = "every trial failed" if failed else "nothing was measured"
        raise RotaError(f"{what}: {last}; rota status {folder} says more")
    return TuneResult(folder, run.order, status)


def _trained(train: Any, space: Mapping[str, Any], files: dict[str, bytes]) -> dict[str, Any]:
    """Return what is trained, by name or as a file of the run; and what trials begin with."""
    found = starts(space)
    start = {"population": {"start": found.tables}}
    if isinstance(train, str):
        if found.meanings:
            name = next(iter(found.meanings))
            raise ConfigError(f"space: {name} must be numbers or texts where `train` is given by name")
        check_trained(named(train))
        return {"trial": train, **start}
    check_trained(train)
    pickle_by_value(getattr(train, "__module__", ""))
    packed = cloudpickle.dumps((train, found.meanings))
    files[TRAIN] = pickle.dumps((sys.path, packed))
    training = {"file": TRAIN, "sha256": hashlib.sha256(files[TRAIN]).hexdigest(), "source": _source(train)}
    return {"trial": OWN_CODE, "training": training, **start}


def _source(train: Any) -> str:
    """Return the digest of its text, and of what it uses of its own module."""
    texts: dict[str, str] = {}
    _gather(train, getattr(train, "__module__", ""), texts)
    return hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()


def _gather(found: Any, module: str, texts: dict[str, str]) -> None:
    """Add what a function or class of a module is, and whatever it names of that module."""
    name = getattr(found, "__qualname__", "")
    if not name or name in texts or getattr(found, "__module__", "") != module:
        return
    codes = list(_codes(found))
    try:
        texts[name] = inspect.getsource(found)
    except (OSError, TypeError):  # typed into an interpreter
        texts[name] = repr([(code.co_code, code.co_names) for code in codes])
    known = vars(sys.modules[module]) if module in sys.modules else {}
    for used in {each for code in codes for each in code.co_names if each in known}:
        value = known[used]
        if isinstance(value, int | float | str | tuple | list | dict):
            texts[f"{used} ="] = repr(value)
        else:
            _gather(value, module, texts)


def _codes(found: Any) -> Iterator[CodeType]:
    """Give the code of a function, of what is inside it, and of the methods of a class."""
    waiting = [found, *(vars(found).values() if inspect.isclass(found) else ())]
    while waiting:
        each = waiting.pop()
        code = each if isinstance(each, CodeType) else getattr(each, "__code__", None)
        if isinstance(code, CodeType):
            yield code
            waiting += [const for const in code.co_consts if isinstance(const, CodeType)]


def _policies(allocation: Any, evolution: Any, files: dict[str, bytes]) -> dict[str, Any]:
    """Return names as they are; objects and classes go into a file of the run."""
    given = {"allocation": allocation, "evolution": evolution}
    objects = {name: policy for name, policy in given.items() if not isinstance(policy, str)}
    if objects:
        for policy in objects.values():
            pickle_by_value((policy if inspect.isclass(policy) else type(policy)).__module__)
        files[POLICIES] = cloudpickle.dumps(objects)
    return {name: f"{POLICIES}:{name}" if name in objects else policy for name, policy in given.items()}


def _slots(cluster: Cluster | Mapping[str, Any] | None, backend: str) -> dict[str, Any]:
    """Return the table of an engine."""
    if backend not in ENGINES:
        raise ConfigError(f"backend is {backend!r}; give one of {', '.join(ENGINES)}")
    if cluster is None and backend != "local":
        return {}
    if isinstance(cluster, Mapping):
        return {backend: dict(cluster)}
    found = Cluster.local() if cluster is None else cluster
    if not isinstance(found, Cluster):
        raise InputError(f"the cluster is a {type(found).__name__}; give a rota.Cluster, or a table")
    if backend == "local":
        _check_machine(found)
    return {backend: {"nodes" if backend == "slurm" else "slots": list(_GROUPS[backend](found))}}


def _check_machine(cluster: Cluster) -> None:
    """Raise an error if this machine does not have what a cluster says."""
    cores = sum(node.slots for node in cluster.nodes if node.kind == CPU)
    if cores > (there := len(own_cores())):
        raise ConfigError(
            f"the cluster has {cores} cores, this machine {there}; give rota.Cluster.local({there}), or "
            f'slots that share cores as a table: cluster={{"slots": [{{"count": {cores}, "cores": 0}}]}}'
        )
    for number in range(cluster.slots - cores):
        if is_missing(str(number)):
            raise ConfigError(
                f"the cluster has {cluster.slots - cores} GPUs, but this process sees no GPU {number} "
                "(nvidia-smi -L, CUDA_VISIBLE_DEVICES); give rota.Cluster.local() for cores"
            )


def _local(cluster: Cluster) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = []
    gpus = 0
    for number, node in enumerate(cluster.nodes):
        name = "here" if len(cluster.nodes) == 1 else f"node{number}"
        about = {"node": name, "speed": cluster.speed("default", node.kind)}
        if node.kind == CPU:
            groups.append({**about, "count": node.slots})
            continue
        groups += [{**about, "gpu": str(gpus + slot)} for slot in range(node.slots)]
        gpus += node.slots
    return groups


def _ray(cluster: Cluster) -> list[dict[str, Any]]:
    return [
        {
            "count": node.slots,
            "node": "here" if len(cluster.nodes) == 1 else f"node{number}",
            "speed": cluster.speed("default", node.kind),
            "gpus": 0.0 if node.kind == CPU else 1.0,
        }
        for number, node in enumerate(cluster.nodes)
    ]


def _slurm(cluster: Cluster) -> list[dict[str, Any]]:
    return [
        {
            "slots": node.slots,
            "speed": cluster.speed("default", node.kind),
            "gres": "" if node.kind == CPU else "gpu",
        }
        for node in cluster.nodes
    ]


_GROUPS = {"local": _local, "ray": _ray, "slurm": _slurm}


def _new_folder(train: Any) -> Path:
    name = train.rpartition(":")[2] if isinstance(train, str) else getattr(train, "__name__", "train")
    stem = FOLDER / f"{re.sub(r'[^A-Za-z0-9_-]', '', name)}-{datetime.now():%Y%m%d-%H%M%S}"
    return next(
        folder
        for number in range(1000)
        if not (folder := stem if number == 0 else stem.with_name(f"{stem.name}-{number}")).exists()
    )
