"""Real runs of populations: how a run begins, resumes and is summed up."""

import hashlib
import json
import math
import pickle
import tomllib
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, Self

import tomli_w

from rota.config.bind import bind
from rota.config.load import dump, override, placed
from rota.config.renamed import with_new_keys
from rota.core.errors import ConfigError, InputError, RotaError
from rota.core.files import write_file
from rota.core.network import Structure
from rota.core.population.events import Assign, Hyper, Idled, Joined, Reported
from rota.core.registry import SUFFIX
from rota.execution.controller import PopulationOutcome, PopulationSpec, Watch, control
from rota.execution.engine import WorkerSetup
from rota.execution.folder import RealFolder, RunPaths
from rota.execution.own_code import NAME as OWN_CODE
from rota.execution.trainable import named
from rota.library.inputs import check_code, code_of
from rota.library.populations import NAMES, Variant, variants
from rota.library.real_grid import parameters_of
from rota.library.real_run_config import RealConfig, RunConfig
from rota.policies.population import PopulationPolicy
from rota.results.parameters import Parameters
from rota.results.population.repetition import Repetition, measure
from rota.results.population.run import Writing, writing
from rota.results.population.summary import PopulationSummary, SlotInfo
from rota.simulator.landscapes import Equal
from rota.simulator.population import PopulationScenario, simulate_trials

PATHS = ("ray.scores", "options.learned.agent", "options.joint.agent", "options.agent.agent")
"""Keys of a configuration that are paths."""
POLICIES = "policies.pkl"
"""A file in the folder of a run: allocations and evolutions that were objects of a script or a notebook."""
NETWORK = "rota.training.trial:network"
"""What is trained, unless a configuration says otherwise."""
GROWN = "rota.training.trial:grown_network"
"""What returns the structure of a network of `[training]` after changes."""
Network = tuple[Structure, tuple[tuple[int, ...], ...]]
RAW = ("options", "training")
"""Tables that are not bound here: those of the policies, and that of what is trained."""


@dataclass(frozen=True, slots=True)
class ExpectedCosts:
    """Expected costs of trials: as much as others with the same network and batch size."""

    model: str
    seconds: float
    order: tuple[str, ...] = ()
    """Changes that a network makes one after the other when it grows."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Table `[training]` of rota's own networks; empty for others, whose structure is not known."""

    def kind(self, hyper: Hyper, changes: tuple[str, ...]) -> str:
        """Return what trials with the same costs have in common: model, batch size, count of changes."""
        words = (self.model, str(hyper.get("batch_size", "")), f"+{len(changes)}" if changes else "")
        return " ".join(word for word in words if word)

    def changes_allowed(self, hyper: Hyper, changes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the change that a network may make next, if any."""
        return self.order[len(changes) : len(changes) + 1]

    def network(self, hyper: Hyper, changes: tuple[str, ...]) -> Network:
        """Return the structure of a network after these changes, and its blocks; empty if it is not known."""
        if not self.settings:
            return Structure((), ()), ()
        found: Network = named(GROWN)(self.settings, changes)
        return found

    def step_s(self, kind: str) -> float:
        """Return the expected seconds of a step on a slot of speed 1."""
        return self.seconds

    def size_mb(self, kind: str) -> float:
        """Return 0: checkpoints are not expected to take time."""
        return 0.0


@dataclass(frozen=True, slots=True)
class RunSpec:
    """A run of a population as it was asked for: checked, and complete."""

    config: RunConfig
    variant: Variant
    training: Mapping[str, Any]
    digest: str = ""
    """Digest of the configuration that a run in a folder began with."""

    def population_spec(self, seed: int) -> PopulationSpec:
        """Return what is trained in the repetition with a seed."""
        config = self.config
        terms = config.population.terms(config.attempts)
        if config.mode == "min" and isfinite(terms.target):
            terms = replace(terms, target=-terms.target)
        return PopulationSpec(
            hypers=config.population.hypers(seed),
            cluster=config.engine.cluster(),
            terms=terms,
            costs=config.costs,
            work=ExpectedCosts(
                str(self.training.get("model", "trial")),
                config.step_s,
                config.changes,
                self.training if config.trial == NETWORK else {},
            ),
            seed=seed,
            report_each=config.population.report == "each",
            config=self.digest,
            deadline_s=config.population.deadline_s,
            mode=config.mode,
        )

    @property
    def generated(self) -> str:
        """The data set that random images take the place of, if any."""
        return str(self.training.get("data", "")) if self.training.get("generated") else ""

    @property
    def said(self) -> str:
        """A text like `4 trials × 2 steps`, and what is not as it was asked for."""
        quick = ", --quick" if self.config.quick else ""
        generated = f", images in the shape of {self.generated} are generated" if self.generated else ""
        return f"{self.config.population.said()}{quick}{generated}"

    @property
    def shortened(self) -> dict[str, Any]:
        """What the result says about a run that is only a try; empty for others."""
        found: dict[str, Any] = {"quick": True} if self.config.quick else {}
        return found | ({"generated": self.generated} if self.generated else {})

    def assignment(self, seed: int, paths: RunPaths, folder: Path) -> WorkerSetup:
        """Return what workers are set up with; `folder` is that of the run."""
        config, settings = self.config, dict(self.training)
        if config.metric:
            settings["metric"] = config.metric
        if config.trial == OWN_CODE:
            file = folder.absolute() / settings["file"]
            settings["file"] = str(file)
            if config.backend == "ray" and not config.ray.shared:
                settings["content"] = b64encode(file.read_bytes()).decode()
        return WorkerSetup(config.trial, settings, seed, paths, config.mode)

    def text(self) -> str:
        """Return the configuration in full, from which it can be resumed."""
        return config_text(self.config, options=self.variant.options, training=dict(self.training))


def config_text(config: RealConfig, **raw: Mapping[str, Any]) -> str:
    """Return a configuration and the tables that are not bound, as TOML."""
    given = {name: table for name, table in raw.items() if table}
    return tomli_w.dumps({**tomllib.loads(dump(config)), **given})


def ordered(
    given: Mapping[str, Any],
    where: Path,
    assignments: Sequence[str] = (),
    objects: Mapping[str, Any] | None = None,
) -> RunSpec:
    """Return what a table says; raises ConfigError if it is wrong. Assignments were put over a file.

    `objects` are policies that names stand for; those of a run that was begun with some are read.
    """
    folder = where.parent.absolute()
    table: dict[str, Any] = placed(given, PATHS, folder, assignments, Path.cwd(), (*NAMES, "trial"))
    rest = {name: value for name, value in table.items() if name not in RAW}
    config = bind(RunConfig, rest, where)
    check_address(config.backend, assignments)
    config = replace(config, ray=config.ray.scored())
    training = table.get("training", {})
    if not isinstance(training, Mapping):
        raise ConfigError(f"{where}: training is not a table")
    check_code(config.code)
    there = objects or pickled_policies(folder, (config.allocation, config.evolution, config.growth))
    (variant,) = variants(config, table.get("options", {}), str(where), there)
    if not config.code:
        config = replace(config, code=code_of([*variant.policies, *in_a_file(config.trial)]))
    return RunSpec(config, variant, training)


def in_a_file(name: str) -> list[Any]:
    """Return what is called so, if that is in a file; elsewhere it may not be installed where this runs."""
    return [named(name)] if SUFFIX in name else []


def pickled_policies(folder: Path, names: Iterable[str]) -> dict[str, Any]:
    """Return the objects in the folder of a run that names stand for: those that were objects of a script."""
    found: dict[str, Any] = {}
    for name in names:
        file, _, key = name.partition(":")
        if file == POLICIES:
            try:
                found[name] = pickle.loads((folder / file).read_bytes())[key]
            except (
                OSError,
                pickle.UnpicklingError,
                EOFError,
                KeyError,
                ImportError,
                AttributeError,
            ) as error:
                raise InputError(f"{folder / file}: cannot be read ({error}); bring it back") from None
    return found


def check_address(backend: str, assignments: Sequence[str]) -> None:
    """Raise ConfigError if the address of a Ray cluster is given for another backend."""
    if backend != "ray" and any(text.startswith("ray.address=") for text in assignments):
        raise ConfigError(f'--address: is of a Ray cluster, but backend is "{backend}"; --set backend=ray')


WARM_TRIALS = 4
"""Number of trials that allocation is compiled with before slots wait for it."""


@dataclass(frozen=True, slots=True)
class RunInFolder:
    """A real run in its folder, of a population or of jobs."""

    folder: RealFolder
    order: Any
    """The run as it was asked for: a `RunSpec` or a `JobsRunSpec`."""
    command: str
    """Command line that made it."""
    anew: bool = False
    """Whether checkpoints are made again if none is left."""
    parameters: Parameters = field(default_factory=dict)
    """The point of a grid that it is at."""
    read: ClassVar[Callable[..., Any]]
    """Function of a table, its file and the settings over it that returns the run as it was asked for."""
    UNSAID: ClassVar[Mapping[str, Any]] = {}
    """Settings that are not in the configurations of older runs."""

    @classmethod
    def begin(cls, order: Any, path: Path, command: str, files: Mapping[str, bytes] | None = None) -> Self:
        """Begin a run in a new folder, with files that it needs (name → content)."""
        order.config.engine.check()
        folder = RealFolder(path)
        folder.begin(order.text(), files or {})
        return cls(folder, replace(order, digest=folder.digest()), command)

    @classmethod
    def resume(cls, path: Path, command: str, settings: Sequence[str] = (), *, anew: bool = False) -> Self:
        """Return the run in a folder, with these settings over its configuration."""
        folder = RealFolder(path)
        table = {**cls.UNSAID, **override(with_new_keys(folder.table(), warn=False), settings)}
        order = cls.read(table, folder.config, settings)
        return cls(folder, replace(order, digest=folder.digest()), command, anew, parameters_of(path))

    @property
    def config_text(self) -> str:
        """The configuration that the run was begun with, wherever it has gone on."""
        return self.folder.config.read_text("utf-8")

    def write_result(self, found: Mapping[str, Any]) -> None:
        """Write the result of the run, last of all."""
        write_file(self.folder.result, json.dumps(found, indent=2) + "\n")


@dataclass(frozen=True, slots=True)
class RealRun(RunInFolder):
    """A run of a population in its folder."""

    order: RunSpec
    read = staticmethod(ordered)

    def carry_out(
        self, asked_to_stop: Callable[[], bool], watch: Callable[[int], Watch]
    ) -> list[PopulationOutcome]:
        """Run one repetition after the other; the last one is not complete if it was stopped."""
        outcomes: list[PopulationOutcome] = []
        self._warm_up()
        try:
            for seed in self.order.config.seeds:
                outcomes.append(self._repetition(seed, asked_to_stop, watch(seed)))
                if not outcomes[-1].complete:
                    return outcomes
            self._write(outcomes)
        finally:
            for outcome in outcomes:
                outcome.timeline.close()
        return outcomes

    def _warm_up(self) -> None:
        """Have all that decides compiled before slots wait for it, by a short simulation and one report."""
        order = self.order.population_spec(self.order.config.seed)
        terms = replace(order.terms, steps=2 * order.terms.interval)
        scene = PopulationScenario(tuple(order.hypers[:WARM_TRIALS]), order.cluster, terms, order.costs)
        with suppress(RotaError):  # what is wrong will be said when it matters
            simulate_trials(
                scene,
                Equal(self.order.config.step_s, 0.0),
                PopulationPolicy(self.order.variant.policy.allocation),
            )
            self._report_once(replace(order, hypers=order.hypers[:WARM_TRIALS], terms=terms))

    def _report_once(self, order: PopulationSpec) -> None:
        """Decide at the beginning and after a report, as a real run does, without running anything."""
        engine, policy = order.state(), self.order.variant.policy
        engine.apply([Joined(0.0, node) for node in range(len(order.cluster.names))])
        assigned = next(
            (each for each in engine.request(policy.plan(engine)) if isinstance(each, Assign)), None
        )
        if assigned is None:
            return
        trial, steps = assigned.parts[0]
        step_s = self.order.config.step_s
        report = Reported(step_s, assigned.slot, trial, steps, 0.0, step_s, 0.0, 0.0)
        engine.apply([report, Idled(step_s, assigned.slot)] if len(assigned.parts) == 1 else [report])
        engine.request(policy.plan(engine))

    def _repetition(self, seed: int, asked_to_stop: Callable[[], bool], watch: Watch) -> PopulationOutcome:
        spec, paths = self.order.population_spec(seed), self.folder.paths(seed)
        assignment = self.order.assignment(seed, paths, self.folder.path)
        engine = self.order.config.engine
        return control(
            spec,
            self.order.variant.policy,
            lambda: engine.workers(spec.cluster, assignment),
            paths,
            asked_to_stop=asked_to_stop,
            watch=watch,
            anew=self.anew,
        )

    def _write(self, outcomes: list[PopulationOutcome]) -> None:
        """Write what a simulation writes, so that the same figures and reports can be made of it."""
        text = self.config_text
        with writing(self.folder.path) as run:
            summary = self._summary([self._measured(outcome, run) for outcome in outcomes])
            inputs = hashlib.sha256(text.encode()).hexdigest()
            run.sum_up(summary, config=text, inputs=inputs, command=self.command, parameters=self.parameters)
        self.write_result(self.record(outcomes))

    def record(self, outcomes: list[PopulationOutcome]) -> dict[str, Any]:
        """Return the result as plain values: of the only repetition, or of the last and, in brief, of all."""
        last = outcomes[-1]
        found = {"complete": last.complete, **last.status.record()}
        if len(outcomes) > 1:
            found["repetitions"] = [_brief(outcome) for outcome in outcomes]
        return found | self.order.shortened

    def _summary(self, repetitions: list[Repetition]) -> PopulationSummary:
        config, found = self.order.config, self.order.config.engine.cluster()
        target = self.order.population_spec(config.seed).terms.target
        return PopulationSummary(
            allocation=self.order.variant.name,
            evolution=self.order.variant.evolution,
            growth=self.order.variant.growth,
            population=self.order.said,
            cluster=f"{config.backend}: {found.slots} slots",
            target=target if math.isfinite(target) else None,
            slots=tuple(
                SlotInfo(found.names[slot.node], slot.device, slot.speed) for slot in found.all_slots
            ),
            repetitions=tuple(repetitions),
            mode=config.mode,
        )

    def _measured(self, outcome: PopulationOutcome, run: Writing) -> Repetition:
        """Measure a timeline until the deadline; it is written while it is read: it may be long."""
        state, seed = outcome.state, outcome.status.frame.seed
        deadline_s = outcome.status.frame.deadline_s
        return measure(
            (event for event in run.passing(seed, outcome.timeline) if event.at_s <= deadline_s),
            self.order.population_spec(seed).hypers,
            state.cluster,
            seed=seed,
            target=state.terms.target,
            decisions=state.decisions,
            wall_s=outcome.wall_s,
            deadline_s=deadline_s,
        )


def _brief(outcome: PopulationOutcome) -> dict[str, Any]:
    whole = outcome.status.record()
    names = ("best", "reports", "clones", "wall_s", "overhead_s_per_report")
    return {"seed": outcome.status.frame.seed, **{name: whole[name] for name in names}}
