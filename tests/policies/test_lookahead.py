"""Lookahead: what is previewed, what cannot be known, and what it decides."""

from dataclasses import replace

import numpy as np
import pytest

from rota.core import columns as c
from rota.core.cluster import Cluster, Node
from rota.core.driver import compiled_of
from rota.core.durations import Durations
from rota.core.errors import ConfigError
from rota.core.loop import planned
from rota.core.policy import Needs
from rota.core.preview import Preview
from rota.core.timeline import Finished
from rota.policies.cluster.lookahead import Lookahead, drawn_iterations
from rota.policies.cluster.registry import scheduler_class
from rota.simulator.jobs import engine_for, simulate
from rota.workload.synthetic import SyntheticConfig, generate

CLUSTER = Cluster.uniform(2, 4)
UNEVEN = Cluster((Node(4, kind="slow"), Node(4, kind="fast")), speeds={"fast": {"default": 3.0}})
JOBS = generate(SyntheticConfig(jobs=60, gpus=8, load=1.5, seed=3))
QUICK = {"every": 4, "budget": 50}


@pytest.mark.parametrize("name", ["srtf", "tiresias", "muri-s"])
def test_with_one_candidate_it_decides_as_that_does(name):
    alone = simulate(JOBS, CLUSTER, scheduler_class(name)())
    assert list(simulate(JOBS, CLUSTER, Lookahead(candidates=(name,))).timeline) == list(alone.timeline)


@pytest.mark.parametrize("name", ["srtf", "tiresias", "muri-s"])
@pytest.mark.parametrize("cluster", [CLUSTER, UNEVEN])
def test_a_preview_ends_as_the_jobs_do_if_no_other_arrives(name, cluster):
    policy = scheduler_class(name)()
    done = simulate(JOBS, cluster, policy, compiled=False)
    ends_s = {event.job: event.at_s for event in done.timeline if isinstance(event, Finished)}
    engine = engine_for(JOBS, cluster, policy.needs)
    previewed = 0
    for view in engine:
        rows = view.order.copy()
        if engine.active + engine.done == len(JOBS) and previewed < 3:
            found = Preview(view, policy.needs, view.columns[c.REMAINING, rows])
            found.go_on(policy, lambda other: planned(policy, other), 10_000)
            expected = [ends_s[int(job)] for job in view.columns[c.JOB, rows]]
            assert found.ends_s() == pytest.approx(expected, rel=1e-9)
            previewed += 1
        engine.commit(policy.plan(view))
    assert previewed == 3


def test_a_preview_moves_running_jobs_if_the_engine_does():
    """With placement `advantage` running jobs move to faster devices; a preview must know that."""
    policy = scheduler_class("srtf")()
    done = simulate(JOBS, UNEVEN, policy, types="advantage", compiled=False)
    ends_s = {event.job: event.at_s for event in done.timeline if isinstance(event, Finished)}
    engine = engine_for(JOBS, UNEVEN, policy.needs, types="advantage")
    for view in engine:
        rows = view.order.copy()
        if engine.active + engine.done == len(JOBS):
            found = Preview(view, policy.needs, view.columns[c.REMAINING, rows])
            found.go_on(policy, lambda other: planned(policy, other), 10_000)
            assert found.ends_s() == pytest.approx([ends_s[int(job)] for job in view.columns[c.JOB, rows]])
            return
        engine.commit(policy.plan(view))


def test_a_preview_has_only_the_jobs_that_are_present():
    policy = scheduler_class("srtf")()
    engine = engine_for(JOBS, CLUSTER, policy.needs)
    for number, view in enumerate(engine):
        if number == 30:
            break
        engine.commit(policy.plan(view))
    rows = view.order.copy()
    assert 1 < len(rows) < len(JOBS) - engine.done
    found = Preview(view, policy.needs, view.columns[c.REMAINING, rows])
    assert found.engine.table.shape[1] == len(rows)
    assert found.engine.table[c.SUBMIT_S].tolist() == sorted(view.submit_s[rows])


@pytest.mark.parametrize("known", ["exact", "none"])
def test_jobs_to_come_decide_nothing(known):
    half = JOBS.submit_s[30]
    others = generate(SyntheticConfig(jobs=60, gpus=8, load=1.5, seed=4))
    mixed = {
        name: np.concatenate([getattr(JOBS, name)[:30], getattr(others, name)[30:]])
        for name in ("gpus", "iterations", "iteration_s", "duration_s", "startup_s")
    }
    other = replace(JOBS, **mixed)
    one, two = (
        [event for event in simulate(jobs, CLUSTER, Lookahead(**QUICK), durations=Durations(known)).timeline
         if event.at_s < half]
        for jobs in (JOBS, other)
    )  # fmt: skip
    assert len(one) > 60
    assert one == two


def test_durations_that_are_not_known_decide_nothing():
    """Jobs that take longer, which nobody has noticed yet, change nothing until the first of them ends."""
    factor = 1.0 + np.arange(len(JOBS)) % 5
    longer = replace(JOBS, iterations=JOBS.iterations * factor, duration_s=JOBS.duration_s * factor)
    known = Durations("none")
    one, two = (simulate(jobs, CLUSTER, Lookahead(**QUICK), durations=known) for jobs in (JOBS, longer))
    assert one.knows == "none"
    first_s = min(event.at_s for event in (*one.timeline, *two.timeline) if isinstance(event, Finished))
    before = [
        [
            (type(event), event.job, round(event.at_s, 6))
            for event in done.timeline
            if event.at_s < first_s - 1e-6
        ]
        for done in (one, two)
    ]  # what is left of a job that is preempted differs, which it cannot see
    assert len(before[0]) > 10
    assert before[0] == before[1]


def test_it_is_the_same_each_time():
    one, two = (simulate(JOBS, UNEVEN, Lookahead(**QUICK)) for _ in range(2))
    assert list(one.timeline) == list(two.timeline)


def test_it_goes_on_from_a_snapshot_as_it_would_have():
    policy = Lookahead(**QUICK)
    engine = engine_for(JOBS, CLUSTER, policy.needs)
    fork = None
    for number, view in enumerate(engine):
        engine.commit(policy.plan(view))
        if number == 40:
            fork = engine.fork(1)[0]
    for view in fork:
        fork.commit(policy.plan(view))
    assert list(fork.timeline()) == list(engine.timeline())


def test_on_unequal_nodes_it_moves_a_job_to_the_faster_one_when_that_pays():
    # The long job gets the slow node, for the fast one is taken; it moves there once that is free.
    jobs = generate(SyntheticConfig(jobs=2, gpus=4, seed=1))
    fixed = {
        "gpus": [4.0, 4.0],
        "iterations": [100.0, 5000.0],
        "iteration_s": [1.0, 1.0],
        "startup_s": [1.0, 1.0],
    }
    given = {name: np.array(values) for name, values in fixed.items()}
    jobs = replace(jobs, **given, duration_s=given["iterations"], submit_s=np.zeros(2))
    stays, moves = (
        simulate(jobs, UNEVEN, policy)
        for policy in (scheduler_class("srtf")(), Lookahead(("srtf",), every=1))
    )
    last_s = [
        max(event.at_s for event in done.timeline if isinstance(event, Finished)) for done in (stays, moves)
    ]
    # Alone: 1 + 5000 s. Moved at 1 + 100/3 s, with 33.3 s of work done: 1 s to start, (5000 - 33.3) / 3 s.
    assert last_s[0] == pytest.approx(5001.0)
    assert last_s[1] == pytest.approx((1 + 100 / 3) + 1 + (5000 - 100 / 3) / 3)


def test_durations_are_drawn_from_what_gittins_expects():
    policy = Lookahead(**QUICK)
    engine = engine_for(JOBS, CLUSTER, policy.needs, durations=Durations("none"))
    for view in engine:
        engine.commit(policy.plan(view))
        if engine.done >= 20:
            break
    rows = view.order
    draws = np.array([drawn_iterations(view, (0, number)) for number in range(200)]) * view.iteration_s[rows]
    assert (draws >= 1.0 - 1e-9).all()
    assert draws.std(axis=0).min() > 0.0
    # The prior alone goes up to 2^20 s; nothing longer is drawn.
    done_s = (view.columns[c.ITERATIONS, rows] - view.columns[c.REMAINING, rows]) * view.iteration_s[rows]
    assert (draws + done_s).max() <= 2.0**20
    again = drawn_iterations(view, (0, 7)) * view.iteration_s[rows]
    assert again.tolist() == draws[7].tolist()


@pytest.mark.parametrize(("options", "message"), [
    ({"candidates": ()}, "candidates is empty"),
    ({"candidates": ("srtf", "srtf")}, "each may be named once"),
    ({"candidates": ("srft",)}, "unknown scheduler 'srft'. Did you mean 'srtf'"),
    ({"candidates": ("lookahead",)}, "lookahead cannot preview itself"),
    ({"candidates": ("elastic",)}, "elastic resizes gangs"),
    ({"candidates": ("muri-s packing",)}, "'packing' is no option"),
    ({"candidates": ("muri-s packs=2",)}, "packs"),
    ({"every": 0}, "every is 0; it must be at least 1"),
    ({"budget": 0}, "budget is 0"),
    ({"draws": 0}, "draws is 0"),
    ({"every_s": -1.0}, "every_s is -1"),
    ({"horizon_s": 0.0}, "horizon_s is 0"),
    ({"per_instant": 0.0}, "per_instant is 0"),
    ({"objective": "avg"}, "unknown objective 'avg'"),
    ({"seed": -1}, "seed is -1"),
])  # fmt: skip
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Lookahead(**options)


def test_where_all_candidates_need_durations_it_says_so_if_none_are_known():
    with pytest.raises(ConfigError, match="need durations, and none are known; add gittins"):
        simulate(JOBS, CLUSTER, Lookahead(("srtf",)), durations=Durations("none"))


def test_it_has_no_compiled_form_and_states_what_it_needs():
    assert compiled_of(Lookahead()) is None
    assert Lookahead().needs.sharing == 4
    assert isinstance(Lookahead(("srtf",)).needs, Needs)


def test_a_preview_does_not_know_what_the_trace_says_of_durations():
    policy = scheduler_class("srtf")()
    engine = engine_for(JOBS, CLUSTER, policy.needs, durations=Durations("noisy"))
    for number, view in enumerate(engine):
        if number == 30:
            break
        engine.commit(policy.plan(view))
    rows = view.order.copy()
    true_s = [view.columns[c.DURATION_S, rows], view.columns[c.ITERATIONS, rows] * view.iteration_s[rows]]
    found = Preview(view, policy.needs, view.remaining[rows]).engine
    assert len(rows) > 1
    assert not np.isin(found.table, np.concatenate(true_s)).any()
