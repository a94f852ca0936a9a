"""Learned scheduling: where it starts, what it sees, and the files of its agents."""

import json

import numpy as np
import pytest

from rota.core import columns as c
from rota.core.cluster import Cluster
from rota.core.driver import drive_compiled
from rota.core.durations import Durations
from rota.core.errors import InputError
from rota.core.timeline import Finished
from rota.policies.cluster.learned import (
    FEATURES,
    SHIPPED,
    Corrected,
    CorrectionWeights,
    LearnedScheduler,
    read_weights,
    write_agent,
)
from rota.policies.cluster.registry import scheduler_class
from rota.simulator.jobs import drive_python, engine_for, simulate
from rota.workload.history import with_history
from rota.workload.synthetic import SyntheticConfig, generate

CLUSTER = Cluster.uniform(2, 4)
JOBS = generate(SyntheticConfig(jobs=80, gpus=8, load=1.5, seed=5))
RULE = {"none": "gittins", "exact": "srtf"}


def flat(seed, scale):
    """Return weights whose last layer is not 0."""
    weights = CorrectionWeights.new(8, seed)
    drawn = np.random.default_rng(seed).normal(size=8) * scale
    return tuple(weights._replace(b=drawn).flat.tolist())


@pytest.mark.parametrize("known", ["none", "exact"])
@pytest.mark.parametrize(
    "weights", [(), tuple(CorrectionWeights.new(4, 1).flat.tolist())], ids=["empty", "last-layer-0"]
)
def test_an_untrained_network_decides_as_the_rule_does(known, weights):
    rule = simulate(JOBS, CLUSTER, scheduler_class(RULE[known])(), durations=Durations(known))
    done = simulate(JOBS, CLUSTER, Corrected(weights, weights), durations=Durations(known))
    assert done.knows == known
    assert list(done.timeline) == list(rule.timeline)


@pytest.mark.parametrize("known", ["none", "exact"])
@pytest.mark.parametrize("seed", [1, 2])
def test_compiled_and_in_python_it_decides_the_same(known, seed):
    policy = Corrected(flat(seed, 1.0), flat(seed, 1.0))
    one, two = (
        simulate(JOBS, CLUSTER, policy, durations=Durations(known), compiled=way) for way in (True, False)
    )
    rule = simulate(JOBS, CLUSTER, scheduler_class(RULE[known])(), durations=Durations(known))
    assert list(one.timeline) == list(two.timeline)
    assert list(one.timeline) != list(rule.timeline)


@pytest.mark.parametrize("seed", range(4))
def test_any_network_lets_all_jobs_end(seed):
    """Networks that would like to preempt whatever runs must not do so for ever."""
    done = simulate(JOBS, CLUSTER, Corrected(flat(seed, 20.0), ()), durations=Durations("none"))
    assert sum(isinstance(event, Finished) for event in done.timeline) == len(JOBS)


def test_a_network_that_only_looks_at_gangs_ranks_by_them():
    # One hidden unit sees the gang, and the score is 100 times that: larger gangs come first.
    row = np.zeros(FEATURES + 2)
    row[1], row[FEATURES + 1] = 1.0, 100.0
    policy = Corrected((), tuple(row.tolist()))
    engine = engine_for(JOBS, CLUSTER, policy.needs)
    seen = 0
    for view in engine:
        plan = policy.plan(view)
        gangs = view.gpus[plan.order]
        assert (np.diff(gangs) <= 0).all()
        seen += len(np.unique(gangs)) > 2
        engine.commit(plan)
    assert seen > 5


def test_durations_that_are_not_known_change_nothing_before_an_end():
    policy = Corrected(flat(1, 0.5), None)
    assert policy.needs.durations == "unused"
    firsts = []
    for factor in (1.0, 3.0):
        jobs = generate(SyntheticConfig(jobs=40, gpus=8, load=1.5, seed=5))
        jobs = jobs.__class__(
            **{name: getattr(jobs, name) for name in jobs.__slots__}
            | {"iterations": jobs.iterations * factor}
        )
        firsts.append(list(simulate(jobs, CLUSTER, policy).timeline))
    end_s = min(event.at_s for events in firsts for event in events if isinstance(event, Finished))
    before = [
        [(type(event), event.job) for event in events if event.at_s < end_s - 1e-6] for events in firsts
    ]
    assert len(before[0]) > 5
    assert before[0] == before[1]


def test_a_written_agent_is_read_again(tmp_path):
    weights = CorrectionWeights.of(np.array(flat(3, 0.1)))
    write_agent(tmp_path, weights, "none", {"seed": 3})
    found, knows = read_weights(tmp_path)
    assert knows == "none"
    assert found.flat == pytest.approx(weights.flat, rel=1e-6)
    assert json.loads((tmp_path / "agent.json").read_text())["kind"] == "schedule"
    one = simulate(JOBS, CLUSTER, LearnedScheduler(tmp_path), durations=Durations("none"))
    two = simulate(JOBS, CLUSTER, Corrected(tuple(found.flat.tolist())), durations=Durations("none"))
    assert list(one.timeline) == list(two.timeline)


def test_an_agent_is_for_durations_that_are_known_or_not(tmp_path):
    for knows, use in (("none", "unused"), ("exact", "needed")):
        write_agent(tmp_path / knows, CorrectionWeights.new(2, 0), knows, {})
        assert LearnedScheduler(tmp_path / knows).needs.durations == use
    assert LearnedScheduler().needs.durations == "optional"


def test_what_is_no_agent_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no agent in it .*rota learn config/learn/schedule.toml"):
        LearnedScheduler(tmp_path)
    weights = CorrectionWeights.new(2, 0)
    write_agent(tmp_path, weights._replace(b=np.full(2, np.nan)), "none", {})
    with pytest.raises(InputError, match="not the weights of this agent"):
        LearnedScheduler(tmp_path)
    with pytest.raises(InputError, match=r"this agent places trials on slots .* schedules jobs"):
        LearnedScheduler(SHIPPED["none"].parent / "place")


@pytest.mark.parametrize("knows", SHIPPED)
def test_the_shipped_agents_have_learned_something(knows):
    weights, found = read_weights(SHIPPED[knows])
    assert found == knows
    assert np.abs(weights.b).max() > 0.0


def test_unequal_devices_are_seen(tmp_path):
    # The first unit sees how much faster the fastest kind is than the mean of all slots: log(4 / 2.5).
    nodes = Cluster.of(slow=4, fast=4, speeds={"fast": {"default": 4.0}})
    row = np.zeros(FEATURES + 2)
    row[10], row[FEATURES + 1] = 1.0, 2.0
    policy = Corrected((), tuple(row.tolist()))
    engine = engine_for(JOBS, nodes, policy.needs)
    for view in engine:
        policy.plan(view)
        assert view.columns[c.OWN + 3, view.order] == pytest.approx(2.0 * np.log(4.0 / 2.5))
        break


@pytest.mark.parametrize("compiled", [True, False])
def test_a_history_is_counted_once_also_if_no_job_is_active_for_a_while(compiled):
    before = generate(SyntheticConfig(jobs=100, gpus=8, load=1.0, seed=6))
    jobs = with_history(generate(SyntheticConfig(jobs=40, gpus=8, load=0.1, seed=5)), before)
    policy = Corrected(flat(1, 0.5), None)
    engine = engine_for(jobs, CLUSTER, policy.needs)
    if compiled:
        drive_compiled(engine, policy.compiled, 512)
    else:
        drive_python(engine, policy)
    counted = engine.view.memory[1]["own_groups"][policy.needs.row("ended"), -1]
    # The jobs that end last of all are seen by no decision.
    assert len(before) + len(jobs) - 3 < counted <= len(before) + len(jobs)
