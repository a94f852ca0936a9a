"""Muri's compiled plan, where it leaves the decision to Python and where it does not."""

from dataclasses import replace

import numpy as np
import pytest

from rota.core.cluster import Cluster
from rota.core.costs import INTERVAL
from rota.core.driver import compiled_of, drive_compiled
from rota.policies.cluster.registry import scheduler_class
from rota.simulator.jobs import engine_for, simulate
from rota.workload.jobs import workload
from rota.workload.profiles import MODELS


def crowd(jobs, gangs):
    """Jobs of all models at once, of random lengths."""
    rng = np.random.default_rng(5)
    return workload(
        "crowd",
        ids=[str(number) for number in range(jobs)],
        submit_s=np.zeros(jobs),
        gpus=rng.choice(gangs, jobs),
        model=[MODELS[number % len(MODELS)] for number in range(jobs)],
        duration_s=rng.uniform(100.0, 5000.0, jobs),
    )


@pytest.mark.parametrize(
    ("jobs", "gangs", "declines"),
    [
        (150, [1, 2, 4], True),  # pairs of pairs of many models: too many types to count, and many kinds
        (30, [1], False),
    ],
)
@pytest.mark.parametrize("name", ["muri-s", "muri-l"])
def test_python_decides_where_types_are_many_and_all_is_the_same(name, jobs, gangs, declines):
    policy, cluster, work = scheduler_class(name)(), Cluster.uniform(2, 8), crowd(jobs, gangs)
    declined = []

    def otherwise(view):
        declined.append(view.now_s)
        return policy.plan(view)

    engine = engine_for(work, cluster, policy.needs, INTERVAL)
    drive_compiled(engine, replace(compiled_of(policy), otherwise=otherwise), 50)
    assert bool(declined) == declines
    assert len(declined) < engine.instants / 2
    same = simulate(work, cluster, policy, INTERVAL, compiled=False).timeline
    assert np.array_equal(engine.timeline().events, same.events)
    assert np.array_equal(engine.timeline().slots, same.slots)
