"""One simulation: jobs, a cluster and a scheduler in; a run out."""

import hashlib
import shlex
import warnings
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from rota.config.load import dump
from rota.core.cluster import Cluster
from rota.core.costs import COSTS, CostModel
from rota.core.durations import EXACT_DURATIONS, Durations, Knows, durations_of
from rota.core.errors import ConfigError, InputError, unknown
from rota.core.failures import Failures
from rota.core.limits import at_least
from rota.core.placement import Types
from rota.core.policy import Policy
from rota.core.registry import PACKAGE, sources
from rota.library.inputs import NamedPolicy, named_policy, settings
from rota.library.run import Run
from rota.results.folder import RunFolder
from rota.results.jobs import JobColumns
from rota.results.metrics import measure
from rota.results.run import RunRecord as Record
from rota.simulator.jobs import Simulation, odd_speeds, warm_up
from rota.simulator.jobs import simulate as simulate_jobs
from rota.workload.jobs import Workload

CostName = Literal["restart", "interval"]
COLUMNS = (
    "submit_s", "gpus", "iterations", "iteration_s", "duration_s", "stages_s", "startup_s", "priority",
    "model", "group",
)  # fmt: skip
"""Columns of a workload that a simulation depends on."""


def simulate(
    jobs: Workload,
    cluster: Cluster,
    scheduler: Any,
    *,
    options: Mapping[str, Any] | None = None,
    cost: CostName | CostModel = "restart",
    checkpoint_every_s: float = 0.0,
    types: Types = "fastest",
    failures: Failures | None = None,
    durations: Durations | Knows = EXACT_DURATIONS,
    progress: Callable[[int], None] | None = None,
) -> Run:
    """Simulate a workload under a scheduler until every job has ended.

    `scheduler` is a name (`"srtf"`), a class in a file or a module (`"aging.py:Aging"`), or an object or a
    class derived from `rota.Scheduler`; `options` are those of a name or a class. With `cost="restart"` a job
    pays its start-up each time it starts or moves; `"interval"` is the rule of the Muri simulator. What was
    done in the last `checkpoint_every_s` productive seconds at most is lost by a pause or a move. With
    `types="fastest"` jobs prefer the idle GPUs that are fastest for their model, with `"advantage"` those on
    which it gains compared with other models, and running jobs move to them, with `"blind"` those that the
    cluster lists first (`placement.types` of a configuration). With `failures` (`rota.Failures`) jobs and
    nodes fail; without it none does, also if jobs failed in the trace. `durations` says what schedulers know
    of how long jobs take: `"exact"`, `"none"`, `"noisy"`, `"predicted"`, or a `rota.Durations` with options;
    `knows` of the run says what this one knew. `progress` is told now and then how many jobs have ended.

    Raises `rota.RotaError` if a job does not fit, or the scheduler asks for what cannot be.

    >>> import rota
    >>> jobs, cluster = rota.synthetic_trace(jobs=40, gpus=16), rota.Cluster.uniform(nodes=2, gpus=8)
    >>> fifo, srtf = rota.simulate(jobs, cluster, "fifo"), rota.simulate(jobs, cluster, "srtf")
    >>> srtf.metrics.avg_jct_s <= fifo.metrics.avg_jct_s
    True
    """
    check_inputs(jobs, cluster)
    check_types(types)
    named, chosen = named_policy(scheduler, options), cost_model(cost, checkpoint_every_s)
    warm_up_once(named.policy, chosen)
    check_failures(failures)
    known = durations_of(durations)
    done = simulate_jobs(
        jobs, cluster, named.policy, chosen, progress, types, failures=failures, durations=known
    )
    return as_run(named, jobs, cluster, chosen, types, failures, done, known)


def check_inputs(jobs: Any, cluster: Any) -> None:
    """Raise InputError if types are wrong; warns of speeds that are of no job."""
    if not isinstance(jobs, Workload):
        raise InputError(f"jobs are a {type(jobs).__name__}; give a rota.Workload, as of rota.read_trace(…)")
    if not isinstance(cluster, Cluster):
        raise InputError(f"the cluster is a {type(cluster).__name__}; give a rota.Cluster")
    for note in odd_speeds(cluster, jobs):
        warnings.warn(note, stacklevel=3)


def cost_model(cost: CostName | CostModel, checkpoint_every_s: float = 0.0) -> CostModel:
    """Return what a start costs, given its name."""
    if isinstance(cost, CostModel):
        return cost
    if cost not in COSTS:
        raise ConfigError(unknown("cost", cost, COSTS))
    at_least(0, checkpoint_every_s=checkpoint_every_s)
    return replace(COSTS[cost], checkpoint_every_s=checkpoint_every_s)


def check_types(types: str) -> None:
    """Raise ConfigError if there is no such preference of devices."""
    if types not in get_args(Types):
        raise ConfigError(unknown("types", types, get_args(Types)))


def check_failures(failures: Any) -> None:
    """Raise ConfigError if failures are something else."""
    if not isinstance(failures, Failures | None):
        raise ConfigError(f"failures is a {type(failures).__name__}; give a rota.Failures")


_warm: set[tuple[type, bool]] = set()


def warm_up_once(policy: Policy, cost: CostModel) -> None:
    """Load or compile what the simulation calls, the first time that a class is simulated.

    A class from outside is not asked about jobs that are none of its business: it compiles on the way.
    """
    key = type(policy), cost.each_instant
    if key not in _warm and type(policy).__module__.partition(".")[0] == PACKAGE:
        warm_up(policy, cost)
    _warm.add(key)


def as_run(
    named: NamedPolicy,
    jobs: Workload,
    cluster: Cluster,
    cost: CostModel,
    types: Types,
    failures: Failures | None,
    done: Simulation,
    durations: Durations = EXACT_DURATIONS,
) -> Run:
    """Return what came of a simulation as a run."""
    measured = measure(done.timeline, jobs, cluster)
    record = Record(
        folder=RunFolder(Path(named.name)),
        scheduler=named.name,
        command=shlex.join(["Python", "rota.simulate", jobs.name, named.name]),
        wall_s=done.wall_s,
        inputs=digest(jobs, cluster, named.policy, cost, types, failures, durations),
        cluster=cluster,
        jobs=JobColumns.of(jobs),
        times=measured.times,
        metrics=measured.metrics,
        kept=done.timeline,
        knows=done.knows,
    )
    return Run(record, _config(named, jobs, cost, types, failures, durations))


def digest(
    jobs: Workload,
    cluster: Cluster,
    policy: Policy,
    cost: CostModel,
    types: Types,
    failures: Failures | None,
    durations: Durations = EXACT_DURATIONS,
) -> str:
    """Digest what a run follows from: jobs, cluster, policy, rules, agents, and the code."""
    names = jobs.models, jobs.groups, jobs.kinds, jobs.speeds
    facts: tuple[object, ...] = (*names, cluster, settings(policy))
    facts += (cost, types, failures, *((jobs.failed_after_s, jobs.failed) if failures else ()))
    facts += () if durations == EXACT_DURATIONS else (durations,)
    facts += () if jobs.history is None else (jobs.history.digest,)
    facts += (jobs.sizes,) if policy.needs.resizes else ()
    found = hashlib.sha256(repr(facts).encode())
    found.update("\0".join(jobs.ids).encode("utf-8", "surrogatepass"))
    for column in COLUMNS:
        found.update(np.ascontiguousarray(getattr(jobs, column)).data)
    found.update(_own_sources())
    deciding = policy, *getattr(policy, "previewed", ())
    modules = {base.__module__ for each in deciding for base in type(each).__mro__}
    files = sorted({file for module in modules for file in sources(module)})
    files += [file for each in deciding for file in getattr(each, "agent_files", ())]
    for file in files:
        found.update(file.read_bytes())
    return found.hexdigest()


@cache
def _own_sources() -> bytes:
    found = hashlib.sha256()
    package = Path(__file__).parents[1]
    for part in ("core", "policies", "simulator", "results"):
        for source in sorted((package / part).rglob("*.py")):
            found.update(source.read_bytes())
    found.update((package / "learning" / "durations.py").read_bytes())  # which predicts
    return found.digest()


def _config(
    named: NamedPolicy,
    jobs: Workload,
    cost: CostModel,
    types: Types,
    failures: Failures | None,
    durations: Durations,
) -> str:
    """Return the part of a run made from Python that a configuration can say."""
    name = next((name for name, known in COSTS.items() if known.each_instant == cost.each_instant), "restart")
    lines = [f"# made from Python, of the workload {jobs.name!r}", f'schedulers = ["{named.name}"]']
    lines += [f'cost = "{name}"', f"checkpoint_every_s = {cost.checkpoint_every_s!r}"]
    try:
        options = dump(named.policy) if is_dataclass(named.policy) else ""
    except (TypeError, ValueError):  # options that a file cannot say
        options = ""
    lines += ["", "[placement]", f'types = "{types}"']
    lines += ["", "[durations]", dump(durations)] if durations != EXACT_DURATIONS else []
    lines += ["", "[failures]", dump(failures)] if failures else []
    return "\n".join(lines) + "\n" + (f'\n[options."{named.name}"]\n{options}' if options else "")
