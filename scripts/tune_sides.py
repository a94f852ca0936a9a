"""A population under Ray Tune's own population-based training, of the trials that rota trains.

As a class whose actors are reused, which is as fast as it gets, and as a function, as most people write it.
"""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from timed_trial import timed

from rota.core.errors import ConfigError
from rota.core.population.events import Hyper
from rota.policies.evolution.explore import USUAL, Space
from rota.policies.evolution.pbt import Pbt

METRIC, TRIAL, CHECKPOINT = "metric", "trial", "trial.bin"


@dataclass(frozen=True, slots=True)
class Job:
    """What is trained, and how long."""

    settings: Mapping[str, Any]
    """Of a timed trial."""
    seed: int
    hypers: Sequence[Hyper]
    """What trials begin with."""
    interval: int
    """Steps between two reports."""
    reports: int
    """Of each trial."""
    cpus: float
    """Of each slot."""
    pbt: Pbt

    @property
    def spaces(self) -> dict[str, Space]:
        return self.pbt.space or {name: space for name, space in USUAL.items() if name in self.hypers[0]}


def as_class(job: Job) -> Any:
    from ray import tune

    class Reused(tune.Trainable):
        """A network is made only where there is no checkpoint to go on from."""

        def setup(self, config: dict[str, Any]) -> None:
            self.trial = timed(job.settings, job.seed)
            self.fresh = config[TRIAL]

        def step(self) -> dict[str, float]:
            if self.fresh is not None:
                self.trial.begin(self.fresh)
                self.fresh = None
            self.trial.train(job.interval, hyper(self.config), ())
            return {METRIC: self.trial.evaluate()}

        def save_checkpoint(self, folder: str) -> None:
            (Path(folder) / CHECKPOINT).write_bytes(self.trial.save())

        def load_checkpoint(self, folder: str) -> None:
            self.trial.load((Path(folder) / CHECKPOINT).read_bytes())
            self.fresh = None

        def reset_config(self, config: dict[str, Any]) -> bool:
            self.fresh = config[TRIAL]
            return True

    return Reused


def as_function(job: Job) -> Any:
    from ray import tune

    def function(config: dict[str, Any]) -> None:
        trial, before = timed(job.settings, job.seed), tune.get_checkpoint()
        if before:
            with before.as_directory() as there:
                trial.load((Path(there) / CHECKPOINT).read_bytes())
        else:
            trial.begin(config[TRIAL])
        while True:
            trial.train(job.interval, hyper(config), ())
            metric = trial.evaluate()
            with tempfile.TemporaryDirectory() as here:
                (Path(here) / CHECKPOINT).write_bytes(trial.save())
                tune.report({METRIC: metric}, checkpoint=tune.Checkpoint.from_directory(here))

    return function


WAYS: dict[str, Callable[[Job], Any]] = {"class": as_class, "function": as_function}


def hyper(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != TRIAL}


def tuned(way: str, job: Job, slots: int, storage: Path) -> list[float]:
    """How good each trial was when it last reported."""
    with connected(slots * job.cpus):
        from ray import tune
        from ray.tune.search.basic_variant import BasicVariantGenerator

        random.seed(job.seed)  # it explores with these
        np.random.seed(job.seed)
        firsts = [{**first, TRIAL: number} for number, first in enumerate(job.hypers)]
        found = tune.Tuner(
            tune.with_resources(WAYS[way](job), {"cpu": job.cpus}),
            param_space=dict(firsts[0]),
            tune_config=tune.TuneConfig(
                metric=METRIC,
                mode="max",
                num_samples=len(firsts),
                search_alg=BasicVariantGenerator(points_to_evaluate=firsts, random_state=job.seed),
                scheduler=_evolution(job),
                reuse_actors=way == "class",
            ),
            run_config=tune.RunConfig(
                storage_path=str(storage.absolute()), stop={"training_iteration": job.reports}, verbose=0
            ),
        ).fit()
        if found.errors:
            raise found.errors[0]
        return [result.metrics[METRIC] for result in found]


@contextmanager
def connected(cpus: float) -> Iterator[None]:
    """With a cluster like the one that rota starts for itself: on the loopback only, with a token."""
    from rota.execution.ray_cluster import RayCluster

    cluster = RayCluster("", cpus)
    cluster.connect()  # before anything of Ray is imported
    try:
        yield
    finally:
        cluster.close()


def _evolution(job: Job) -> Any:
    """As ours is configured; what Ray Tune's has no word for is an error."""
    from ray.tune.schedulers import PopulationBasedTraining

    pbt, spaces = job.pbt, job.spaces
    if pbt != Pbt(quantile=pbt.quantile, space=pbt.space, resample=pbt.resample, factors=pbt.factors):
        raise ConfigError("options.pbt: Ray Tune knows only quantile, space, resample and factors")

    def kept(config: dict[str, Any]) -> dict[str, Any]:
        """Within the ranges, which Ray Tune's factors may lead out of."""
        for name, space in spaces.items():
            if not space.listed:
                config[name] = space.kept(config[name], config[name] / max(pbt.factors))
        return config

    return PopulationBasedTraining(
        time_attr="training_iteration",
        perturbation_interval=1,
        quantile_fraction=pbt.quantile,
        resample_probability=pbt.resample,
        perturbation_factors=pbt.factors,
        hyperparam_mutations={name: _drawn(space) for name, space in spaces.items()},
        custom_explore_fn=kept,
    )


def _drawn(space: Space) -> Any:
    from ray import tune

    if space.listed:
        return list(space.listed)
    return (tune.loguniform if space.log else tune.uniform)(space.low, space.most)
