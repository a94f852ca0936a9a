"""Small populations whose every report can be worked out by hand, on any backend.

A trial of `rota.execution.idle` is as good as what it has had: each step adds its `lr`, and one for each
change of its network. It begins with 2⁻²⁰ times its number.
"""

import math
import os
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomli_w

from rota.core.cluster import Cluster
from rota.core.population.costs import AssignmentCosts
from rota.core.population.engine import PopulationEngine
from rota.core.population.events import Assign, Cloned, Event, Interval, Reported
from rota.core.population.view import Terms
from rota.execution.controller import PopulationOutcome, PopulationSpec, control
from rota.execution.engine import WorkerSetup
from rota.execution.folder import RunPaths
from rota.execution.idle import FIRST
from rota.execution.local import LocalConfig, LocalSlotConfig
from rota.execution.ray_config import RayConfig, RaySlotConfig
from rota.execution.slurm_config import SlurmConfig, SlurmNodeConfig
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Equal
from rota.simulator.population import PopulationScenario, simulate_trials

STEP_S = 0.0005
IDLE = "rota.execution.idle:idle"


class Had(Equal):
    """In a simulation: what `rota.execution.idle` does."""

    def __init__(self) -> None:
        super().__init__(STEP_S)
        self.had: dict[int, float] = {}
        self.adds: dict[int, float] = {}

    def begin(self, trial, hyper):
        self.had[trial], self.adds[trial] = trial * FIRST, hyper["lr"]

    def train(self, trial, steps):
        self.had[trial] += steps * self.adds[trial]
        return self.had[trial]

    def clone(self, trial, donor, hyper, changes):
        self.had[trial], self.adds[trial] = self.had[donor], hyper["lr"] + len(changes)


@dataclass(frozen=True)
class Twice:
    """Lists of up to two trials, each of them twice: a b a b."""

    def hand_out(self, view):
        while view.idle and view.waiting:
            rounds, left = [], {trial: view.remaining(trial) for trial in view.waiting[:2]}
            for _ in range(2):
                for trial in left:
                    steps = min(view.terms.interval, left[trial])
                    left[trial] -= steps
                    rounds += [Interval(trial, steps)] if steps else []
            yield Assign(view.idle[0], rounds)


class Conducted(NamedTuple):
    """What came of a population."""

    timeline: Sequence[Event]
    state: PopulationEngine


@dataclass(frozen=True)
class Small:
    """A population that is done in a moment."""

    trials: int = 4
    slots: int = 2
    terms: Terms = field(default_factory=lambda: Terms(interval=10, steps=40))
    report_each: bool = True
    seed: int = 0
    deadline_s: float = math.inf

    @property
    def cluster(self) -> Cluster:
        return LocalConfig((LocalSlotConfig(count=self.slots),)).cluster()

    @property
    def hypers(self) -> list[dict[str, Any]]:
        return [{"lr": 0.25 * (1 + trial)} for trial in range(self.trials)]

    def spec(self) -> PopulationSpec:
        return PopulationSpec(
            self.hypers,
            self.cluster,
            self.terms,
            AssignmentCosts(),
            Equal(STEP_S),
            self.seed,
            self.report_each,
            deadline_s=self.deadline_s,
        )


def simulated(small: Small, policy: PopulationPolicy, folder: Path) -> Conducted:
    scene = PopulationScenario(tuple(small.hypers), small.cluster, small.terms, report_each=small.report_each)
    done = simulate_trials(scene, Had(), policy, small.seed)
    return Conducted(done.timeline, done.state)


def on_local(
    small: Small, policy: PopulationPolicy, folder: Path, trial: str = IDLE, settings: Any = None, **more: Any
) -> PopulationOutcome:
    engine = LocalConfig((LocalSlotConfig(count=small.slots, cores=0),))
    paths = RunPaths(folder / "books")
    setup = WorkerSetup(trial, settings or {"step_s": STEP_S}, small.seed, paths)
    return control(small.spec(), policy, lambda: engine.workers(small.cluster, setup), paths, **more)


def on_ray(small: Small, policy: PopulationPolicy, folder: Path, ray: Any, **more: Any) -> PopulationOutcome:
    slots = RaySlotConfig(count=small.slots, labels={"kind": "fast"})
    engine = RayConfig(ray.address, (slots,))
    paths = RunPaths(folder / "books")
    setup = WorkerSetup(IDLE, {"step_s": STEP_S}, small.seed, paths)
    return control(small.spec(), policy, lambda: engine.workers(small.cluster, setup), paths, **more)


def on_slurm(
    small: Small,
    policy: PopulationPolicy,
    folder: Path,
    trial: str = IDLE,
    settings: Any = None,
    slurm: Any = None,
    **more: Any,
) -> PopulationOutcome:
    """In a job that is asked for; `slurm` must be there, and known by SLURM_CONF."""
    engine = SlurmConfig((SlurmNodeConfig(slots=small.slots),))
    paths = RunPaths(folder / "books")
    setup = WorkerSetup(trial, settings or {"step_s": STEP_S}, small.seed, paths)
    return control(small.spec(), policy, lambda: engine.workers(small.cluster, setup), paths, **more)


BACKENDS: dict[str, Callable[..., Any]] = {
    "simulator": simulated,
    "local": on_local,
    "ray": on_ray,
    "slurm": on_slurm,
}
"""Each takes a small population, a policy and an empty folder, and gives a `timeline` and a `state`."""
ENGINES = {"ray": "ray", "slurm": "outside"}
"""Backend → the fixture that it needs; it is given what that gives."""


@pytest.fixture
def outside(slurm, monkeypatch):
    """This process finds a real Slurm, and is in no allocation of it."""
    for name in [name for name in os.environ if name.startswith("SLURM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLURM_CONF", slurm.environment["SLURM_CONF"])
    return slurm


@pytest.fixture(params=BACKENDS)
def conduct(request, tmp_path):
    """Runs a small population on each backend there is."""
    name = request.param
    engine = {name: request.getfixturevalue(ENGINES[name])} if name in ENGINES else {}

    def run(small: Small, policy: PopulationPolicy) -> Conducted:
        done = BACKENDS[name](small, policy, tmp_path, **engine)
        return Conducted(list(done.timeline), done.state)

    return run


@pytest.fixture
def simulate(tmp_path):
    return lambda small, policy: simulated(small, policy, tmp_path)


@pytest.fixture
def local(tmp_path):
    """Runs a small population on workers here; the same folder each time, so that a second call resumes."""
    return lambda small, policy, **more: on_local(small, policy, tmp_path, **more)


@pytest.fixture
def paths(tmp_path):
    """Where `local` keeps its run."""
    return RunPaths(tmp_path / "books")


@pytest.fixture
def small():
    return Small


@pytest.fixture
def twice():
    return Twice()


@pytest.fixture
def trial_module(tmp_path, monkeypatch):
    """Writes a module that workers can import; the name of its function `make`."""

    def write(source: str, name: str = "odd_trials") -> str:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
        return f"{name}:make"

    return write


@dataclass(frozen=True)
class Rationed:
    """Trials on workers that train so many parts each, and no more until they are set free.

    A run is then never over before it has been killed so often, however long anything takes.
    """

    trial: str
    free: Path
    """If it exists there is no ration any more."""

    def settings(self, ration: int, patience_s: float = math.inf, **more: Any) -> dict[str, Any]:
        """Beyond its ration a worker waits for so long before each part. Without a model it only waits."""
        return {"ration": ration, "free": str(self.free), "patience_s": patience_s, **more}

    def training(self, ration: int, patience_s: float = math.inf, **more: Any) -> str:
        """The same in a configuration."""
        return tomli_w.dumps({"training": self.settings(ration, patience_s, **more)})


RATIONED = """
    import time
    from pathlib import Path
    from rota.execution.idle import idle
    from rota.execution.trainable import Trainable

    OWN = ("ration", "free", "patience_s")

    class Rationed:
        def __init__(self, inner, ration, free, patience_s):
            self.inner, self.left, self.free, self.patience_s = inner, ration, Path(free), patience_s

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def train(self, steps, hyper, changes):
            until_s = time.monotonic() + self.patience_s
            while not self.left and not self.free.exists() and time.monotonic() < until_s:
                time.sleep(0.02)
            self.left = max(0, self.left - 1)
            self.inner.train(steps, hyper, changes)

    def make(settings, seed) -> Trainable:
        if "model" in settings:
            from rota.training.trial import network as factory
        else:
            factory = idle
        inner = factory({name: value for name, value in settings.items() if name not in OWN}, seed)
        return Rationed(inner, *(settings[name] for name in OWN))
"""


@pytest.fixture
def rationed(trial_module, tmp_path):
    return Rationed(trial_module(RATIONED, "rationed_trials"), tmp_path / "free")


@pytest.fixture
def follows():
    """Checks that each report follows from those before it: nothing was lost, nothing was trained twice."""

    def check(timeline: Sequence[Event], hypers: Sequence[dict[str, Any]]) -> int:
        had = [trial * FIRST for trial in range(len(hypers))]
        adds = [hyper["lr"] for hyper in hypers]
        reports = 0
        for event in timeline:
            if isinstance(event, Reported):
                had[event.trial] += event.steps * adds[event.trial]
                assert event.metric == had[event.trial]
                reports += 1
            elif isinstance(event, Cloned):
                had[event.trial] = had[event.donor]
                adds[event.trial] = event.hyper["lr"] + len(event.changes)
        return reports

    return check
