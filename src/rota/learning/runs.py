"""From a configuration to agents: stages in order, and trees left out."""

import shutil
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from rota.config.load import dump
from rota.core.errors import ConfigError, InputError
from rota.core.files import folder_lock, write_file
from rota.core.processes import run_dag
from rota.learning.agent import KIND, Agent, read_agent, weights_sha256, write_agent
from rota.learning.config import LearnConfig
from rota.learning.evaluate import best_fixed_of_each, rows
from rota.learning.files import HistoryRow, is_agent, read_history, write_course
from rota.learning.learner import LearningStage, begin, carry_through, learned, place_of, spent
from rota.learning.outcome import totals
from rota.learning.problem import is_among, name_of, names, problem_of, tree_digest
from rota.policies.agents import read_facts
from rota.recordings.folder import provenance
from rota.recordings.tree import Tree

LIBRARIES = ("torch", "numpy")
ANEW = "anew"
"""Name of the file that marks the folder of a stage that is being learned again."""


@dataclass(frozen=True)
class LearningRun(ABC):
    """One agent of any kind to learn, in a folder of its own."""

    folder: Path
    kind: ClassVar[str]
    """Kind of the agent."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """A digest of all that determines the agent."""

    @property
    def done(self) -> bool:
        """Whether this agent has been learned."""
        if not is_agent(self.folder):
            return False
        found = read_facts(self.folder)
        return (found.kind, found.about.get("digest")) == (self.kind, self.digest)

    def refuse_another(self) -> None:
        """Raise an error if the folder has an agent that was learned in another way."""
        if is_agent(self.folder) and not self.done:
            raise InputError(
                f"{self.folder}: another agent is there (learned from other recordings, or in another way); "
                "give another folder with --out, or --again to learn anew"
            )


@dataclass(frozen=True)
class AgentRun(LearningRun):
    """One agent that changes networks."""

    config: LearnConfig
    seed: int
    last: LearningStage
    kind = KIND

    @property
    def digest(self) -> str:
        """A digest of all that determines the agent."""
        return self.last.digest

    @property
    def trees(self) -> list[Tree]:
        """The trees of all its stages, each once."""
        return list({id(tree): tree for stage in self.last.chain for tree in stage.trees}.values())


def plan(config: LearnConfig, trees: Sequence[Tree], out: Path, folder: Path) -> list[AgentRun]:
    """Return a run for each seed from the trees that are configured; `out` is the folder of stages."""
    return plan_from(config, wanted(trees, config), out, folder)


def plan_from(config: LearnConfig, trees: Sequence[Tree], out: Path, folder: Path) -> list[AgentRun]:
    """Return a run for each seed from all of these trees; a single seed uses the folder itself."""
    several = len(config.seeds) > 1
    return [
        AgentRun(
            folder / f"seed{seed}" if several else folder, config, seed, _chain(config, trees, seed, out)
        )
        for seed in config.seeds
    ]


def wanted(trees: Sequence[Tree], config: LearnConfig) -> list[Tree]:
    """Return the trees of the models and seeds that a configuration names; an error if one has none."""
    models = [model.lower() for model in config.models]
    of_models = [tree for tree in trees if not models or tree.model.lower() in models]
    found = [tree for tree in of_models if not config.recorded_seeds or tree.seed in config.recorded_seeds]
    for model in config.models:
        _check_some(trees, model)
    for seed in config.recorded_seeds:
        if seed not in {tree.seed for tree in of_models}:
            of = f" of {', '.join(models)}" if models else ""
            seeds = ", ".join(map(str, sorted({tree.seed for tree in of_models})))
            raise ConfigError(f"recorded_seeds: no tree{of} from {seed}; there are only trees from {seeds}")
    for model in config.models:
        _check_some(found, model, f" from {', '.join(map(str, config.recorded_seeds))}")
    return found


def _check_some(trees: Sequence[Tree], model: str, which: str = "") -> None:
    models = {tree.model.lower() for tree in trees}
    if model.lower() not in models:
        raise ConfigError(f"models: no tree of {model!r}{which}; there are: {', '.join(sorted(models))}")


def matching(trees: Sequence[Tree], stage: str) -> tuple[Tree, ...]:
    """Return the trees that a stage names."""
    parts = {part.strip().lower() for part in stage.split("+")}
    called = [
        (name.lower(), name_of(tree).lower(), tree.scenario.lower())
        for name, tree in zip(names(trees), trees, strict=True)
    ]
    known = dict.fromkeys(name for each in called for name in each)
    unknown = sorted(parts - {"*", *known})
    if unknown:
        raise ConfigError(f"stages: no tree for {unknown[0]!r}; there are: {', '.join(known)}")
    return tuple(tree for tree, each in zip(trees, called, strict=True) if {"*", *each} & parts)


def _chain(config: LearnConfig, trees: Sequence[Tree], seed: int, out: Path) -> LearningStage:
    before: LearningStage | None = None
    checksum = weights_sha256(config.start) if config.start else ""
    for text in config.stages:
        again = before is not None or config.start is not None
        before = LearningStage(
            method=config.method,
            trees=matching(trees, text),
            episodes=(config.transfer_episodes if again else None) or config.episodes,
            temperature=config.temperature if again else 1.0,
            seed=seed,
            folder=place_of(out),
            before=before,
            start=config.start if before is None else None,
            start_sha256=checksum if before is None else "",
        )
    assert before is not None  # a configuration has one stage or more
    return before


def check(runs: Iterable[AgentRun]) -> None:
    """Raise an error if one of the runs cannot be learned."""
    for run in runs:
        first = run.last.chain[0]
        agent = begin(first)
        if agent.name != run.config.method.network:
            raise ConfigError(
                f"start: {first.start} has the {agent.name} network, method.network is "
                f"{run.config.method.network}; make them the same"
            )
        check_trees(agent, run.trees)


def check_trees(agent: Agent, trees: Iterable[Tree]) -> None:
    """Raise an error if a tree is incomplete, or an agent cannot decide in it."""
    for tree in trees:
        problem_of(tree)
        if not agent.decides_between(len(tree.actions)):
            raise ConfigError(
                f"{name_of(tree)} has {len(tree.actions)} actions, the {agent.name} network was built for "
                f"{agent.options['actions']}; choose other trees, or the structural network"
            )


def learn(
    runs: Sequence[AgentRun],
    out: Path,
    workers: int,
    command: str,
    on_episodes: Callable[[int], None] | None = None,
    *,
    again: bool = False,
) -> Iterator[AgentRun]:
    """Learn the runs that are not done, or all again; yield each when its agent is written.

    An agent is replaced only when the new one has been learned to the end.
    """
    with folder_lock(out):
        waiting = [run for run in runs if again or not run.done]
        yield from (run for run in runs if run not in waiting)
        check(waiting)
        if again:
            _begin_again(run for run in waiting if run.done)
        missing = {stage.digest: stage for run in waiting for stage in run.last.chain if not stage.done}
        yield from _finished(waiting, command)
        for _ in _carried(list(missing.values()), workers, on_episodes):
            yield from _finished(waiting, command)
        _forget(runs, out)


def _begin_again(runs: Iterable[AgentRun]) -> None:
    """Delete the stages of runs, except those that were begun again and stopped."""
    for stage in (stage for run in runs for stage in run.last.chain):
        if not (stage.place / ANEW).exists():
            shutil.rmtree(stage.place, ignore_errors=True)
            stage.place.mkdir(parents=True)
            (stage.place / ANEW).touch()


def _forget(runs: Iterable[AgentRun], out: Path) -> None:
    for stage in (stage for run in runs for stage in run.last.chain):
        shutil.rmtree(stage.place, ignore_errors=True)
    with suppress(OSError):
        place_of(out).rmdir()


def _carried(
    stages: list[LearningStage], workers: int, on_episodes: Callable[[int], None] | None
) -> Iterator[LearningStage]:
    """Learn stages, each after its predecessor; a single one in this process, to show its progress."""
    if len(stages) <= 1 or workers == 1:
        for stage in stages:
            carry_through(stage, on_episodes)
            yield stage
        return
    open_ = {stage.digest for stage in stages}
    ready = [stage for stage in stages if stage.before is None or stage.before.digest not in open_]

    def then(done: LearningStage) -> list[LearningStage]:
        return [stage for stage in stages if stage.before and stage.before.digest == done.digest]

    for stage in run_dag(carry_through, ready, then, min(workers, len(stages))):
        if on_episodes is not None:
            on_episodes(stage.drawn)
        yield stage


def _finished(waiting: list[AgentRun], command: str) -> Iterator[AgentRun]:
    """Write the agents of runs whose last stage is done, and yield the runs, each once."""
    for run in [run for run in waiting if run.last.done]:
        waiting.remove(run)
        finish(run, command)
        yield run


def finish(run: AgentRun, command: str) -> None:
    """Write the agent of a run whose stages are done, `agent.json` last."""
    history = [row for stage in run.last.chain for row in read_history(stage.place, HistoryRow)]
    write_course(run.folder, history)
    config = dump(_alone(run))
    write_file(run.folder / "learn.toml", config)
    made = provenance(device="cpu, 1 thread", seed=run.seed, command=command, libraries=LIBRARIES)
    agent = replace(learned(run.last), about=about_of(run, *spent(run.last)))
    problems = [problem_of(tree) for tree in run.trees]
    reached = totals(rows(agent, problems, agent.learned_from, agent.fixed))
    write_agent(run.folder, agent, made, tomllib.loads(config), reached)


def _alone(run: AgentRun) -> LearnConfig:
    config = run.config
    paths = tuple(path.absolute() for path in config.recordings)
    start = config.start.absolute() if config.start else None
    return replace(config, seeds=(run.seed,), recordings=paths, start=start)


def about_of(run: AgentRun, seconds: float, episodes: int) -> dict[str, Any]:
    """Return how an agent was learned, for its file."""
    before = read_agent(run.config.start).about.get("stages", []) if run.config.start else []
    called = dict(zip(map(id, run.trees), names(run.trees), strict=True))
    stages = [
        {
            "trees": list(dict.fromkeys(called[id(tree)] for tree in stage.trees)),
            "digests": [tree_digest(tree) for tree in stage.trees],
            "episodes": stage.drawn,
            "temperature": stage.temperature,
        }
        for stage in run.last.chain
    ]
    return {
        "digest": run.last.digest,
        "seed": run.seed,
        "stages": [*before, *stages],
        "fixed": best_fixed_of_each([problem_of(tree) for tree in run.trees]),
        "started_from": str(run.config.start or ""),
        "seconds": round(seconds, 3),
        "episodes": episodes,
        "episodes_per_s": round(episodes / seconds, 1) if seconds else 0.0,
    }


By = Literal["scenario", "model", "tree"]
"""What is left out: a scenario of all models, all of a model, or one scenario of one model."""


@dataclass(frozen=True, slots=True)
class Fold:
    """One part that is left out, and the runs that learn from the others."""

    name: str
    left_out: tuple[Tree, ...]
    runs: tuple[AgentRun, ...]
    """A run for each seed of the agent."""


def folds(config: LearnConfig, trees: Sequence[Tree], by: By, out: Path) -> list[Fold]:
    """Return the folds of a leave-one-out evaluation. Raises an error if agents cannot be evaluated there."""
    if config.stages != ("*",):
        raise ConfigError(f"stages: --leave-out {by} learns from all others at once; leave stages out")
    trees = wanted(trees, config)
    _check_start(config, trees)
    keys = _keys(trees, by)
    if len(set(keys)) < 2:
        raise ConfigError(f"--leave-out {by}: there is only {keys[0]}; give recordings of two or more")
    found = []
    for name in dict.fromkeys(keys):
        known = [tree for tree, key in zip(trees, keys, strict=True) if key != name]
        rest = tuple(tree for tree, key in zip(trees, keys, strict=True) if key == name)
        runs = plan_from(config, known, out, out / f"without-{name.replace('/', '-')}")
        check_trees(begin(runs[0].last.chain[0]), rest)
        found.append(Fold(name, rest, tuple(runs)))
    return found


def _check_start(config: LearnConfig, trees: Sequence[Tree]) -> None:
    known = read_agent(config.start).learned_from if config.start else frozenset()
    for tree in trees:
        if is_among(tree, known):
            raise ConfigError(
                f"start: {config.start} has learned from {name_of(tree)}, which is left out here; "
                "leave start out, or give an agent that has not"
            )


def _keys(trees: Sequence[Tree], by: By) -> list[str]:
    """Return a key per tree; trees with the same key are left out together."""
    if by == "tree":
        return names(trees)
    return [tree.scenario if by == "scenario" else tree.model.lower() for tree in trees]
