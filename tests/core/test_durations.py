"""What schedulers know of durations: exact, none, noisy, predicted; what they do not know has no effect."""

from dataclasses import replace

import numpy as np
import pytest

import rota
from rota.core import columns as c
from rota.core.durations import Durations, by_groups, known_left
from rota.core.errors import ConfigError
from rota.core.policy import Needs
from rota.core.timeline import EventKind
from rota.learning.durations import by_trees
from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
from rota.simulator.jobs import engine_for, simulate
from rota.workload.jobs import Workload

CLUSTER = rota.Cluster.uniform(nodes=2, gpus=4)
IGNORANT = [name for name in SCHEDULERS if scheduler_class(name)().needs.durations == "unused"]


def drawn(seed: int = 3, jobs: int = 60) -> Workload:
    return rota.synthetic_trace(jobs=jobs, gpus=8, load=1.5, seed=seed)


@pytest.mark.parametrize(
    ("known", "needed", "optional"),
    [
        ("exact", "exact", "exact"),
        ("none", "exact", "none"),
        ("noisy", "noisy", "noisy"),
        ("predicted", "predicted", "predicted"),
    ],
)
def test_what_is_shown_depends_on_the_setting_and_on_the_use(known, needed, optional) -> None:
    durations = Durations(known)
    assert durations.shown_to("needed") == needed
    assert durations.shown_to("optional") == optional
    assert durations.shown_to("unused") == "none"


def test_these_schedulers_do_not_know_durations() -> None:
    assert {"fifo", "tiresias", "las", "gittins", "random", "antman", "muri-l"} <= set(IGNORANT)
    assert not {"srtf", "srsf", "themis", "muri-s", "elastic"} & set(IGNORANT)


@pytest.mark.parametrize(
    ("estimate", "done", "left"), [(10.0, 4.0, 6.0), (10.0, 10.0, 10.0), (10.0, 12.0, 8.0), (3.0, 20.0, 4.0)]
)
def test_a_job_that_outlives_what_was_told_is_taken_to_last_twice_as_long(estimate, done, left) -> None:
    columns = np.zeros((c.OWN, 1))
    columns[c.ITERATIONS], columns[c.ESTIMATE], columns[c.REMAINING] = 35.0, estimate, 35.0 - done
    assert known_left(columns, 0) == left


def test_what_is_known_exactly_is_what_is_left_to_the_last_bit() -> None:
    columns = np.zeros((c.OWN, 1))
    columns[c.ITERATIONS] = columns[c.ESTIMATE] = 0.3
    columns[c.REMAINING] = 0.1
    assert known_left(columns, 0) == 0.1


def test_errors_explain_the_given_share_of_the_variance_and_follow_the_name_of_the_job() -> None:
    jobs = drawn(jobs=4000)
    table = jobs.table(CLUSTER)
    Durations("noisy", r2=0.6).put_into(table, jobs.ids, "needed")
    truth, estimate = np.log(table[c.ITERATIONS]), np.log(table[c.ESTIMATE])
    assert 1.0 - np.var(estimate - truth) / np.var(np.log(jobs.solo_s)) == pytest.approx(0.6, abs=0.03)
    renamed = jobs.table(CLUSTER)
    Durations("noisy", r2=0.6).put_into(renamed, jobs.ids[::-1], "needed")
    np.testing.assert_allclose(
        (renamed[c.ESTIMATE] / table[c.ITERATIONS])[::-1], table[c.ESTIMATE] / table[c.ITERATIONS]
    )
    other = jobs.table(CLUSTER)
    Durations("noisy", r2=0.6, seed=1).put_into(other, jobs.ids, "needed")
    assert abs(np.corrcoef(np.log(other[c.ESTIMATE]) - truth, estimate - truth)[0, 1]) < 0.1


def test_groups_predict_their_geometric_mean_drawn_towards_that_of_all() -> None:
    table = np.zeros((c.GIVEN, 4))
    table[c.ITERATION_S] = 1.0
    table[c.ITERATIONS] = np.exp([2.0, 4.0, 9.0, 1.0])
    table[c.GROUP] = [0, 0, 1, 0]
    found = np.log(by_groups(table, np.array([0, 1], np.int32), slice(2, 4)))
    of_all = (np.log(3600.0) + 2.0 + 4.0) / 3.0  # and an hour, which counts as one job
    np.testing.assert_allclose(found, [of_all, (2.0 + 4.0 + 2.0 * of_all) / 4.0])


def test_trees_find_what_the_hour_says() -> None:
    pytest.importorskip("sklearn")
    table = np.zeros((c.GIVEN, 400))
    table[c.ITERATION_S], table[c.GPUS] = 1.0, 1.0
    table[c.SUBMIT_S] = np.arange(400) * 7200.0
    night = table[c.SUBMIT_S] % 86400.0 < 43200.0
    table[c.ITERATIONS] = np.where(night, 10_000.0, 100.0)
    found = by_trees(table, np.arange(300, dtype=np.int32), slice(300, 400))
    assert found[night[300:]].min() > 5_000.0
    assert found[~night[300:]].max() < 200.0


def changed_future(jobs: Workload, chosen: np.ndarray) -> Workload:
    """Return the same jobs, some of which take three times as long."""
    factor = np.where(chosen, 3.0, 1.0)
    return replace(jobs, iterations=jobs.iterations * factor, duration_s=jobs.duration_s * factor)


def decisions(jobs: Workload, name: str, durations: Durations, *, compiled: bool) -> tuple[list, np.ndarray]:
    """Return the events of a simulation, without what is left of paused jobs, and when each job ends."""
    policy = scheduler_class(name)()
    found = simulate(jobs, CLUSTER, policy, durations=durations, compiled=compiled).timeline
    ends_s = np.full(len(jobs), np.inf)
    events = []
    for event in found.events:
        if event["kind"] == EventKind.FINISHED:
            ends_s[event["job"]] = event["at_s"]
        slots = found.slots[event["begin"] : event["begin"] + event["gpus"]].tolist()
        events.append((float(event["at_s"]), int(event["kind"]), int(event["job"]), slots))
    return events, ends_s


ADAPTIVE = [name for name in SCHEDULERS if scheduler_class(name)().needs.durations == "optional"]


@pytest.mark.parametrize(
    "name", [*IGNORANT, *ADAPTIVE, "srtf predicted", "muri-s predicted", "themis predicted"]
)
def test_the_future_of_jobs_has_no_effect_before_it_shows(name: str) -> None:
    name, known = name.split() if " " in name else (name, "none")
    for seed, compiled in ((1, True), (2, False)):
        jobs = drawn(seed)
        chosen = (np.arange(len(jobs)) > 25) & (np.arange(len(jobs)) % 3 == 0)
        first, ends_s = decisions(jobs, name, Durations(known), compiled=compiled)
        second, _ = decisions(changed_future(jobs, chosen), name, Durations(known), compiled=compiled)
        shows_s = ends_s[chosen].min()
        before = [event for event in first if event[0] < shows_s]
        assert before == [event for event in second if event[0] < shows_s]
        assert len(before) > 20
        assert first != second


@pytest.mark.parametrize("known", ["noisy", "predicted"])
def test_compiled_and_python_decide_alike_and_copies_go_on_alike(known: str) -> None:
    jobs, durations = drawn(), Durations(known)
    policy = scheduler_class("srtf")()
    one, other = (
        simulate(jobs, CLUSTER, policy, durations=durations, compiled=each) for each in (True, False)
    )
    assert (one.timeline.events == other.timeline.events).all()
    assert one.knows == known
    engine = engine_for(jobs, CLUSTER, policy.needs, durations=durations)
    for number, view in enumerate(engine):
        if number == 60:
            (fork,) = engine.fork(1)
            fork.commit(policy.plan(fork.view))
            for again in fork:
                fork.commit(policy.plan(again))
        engine.commit(policy.plan(view))
    assert (engine.timeline().events == one.timeline.events).all()
    assert (fork.timeline().events == one.timeline.events).all()


def test_a_perfect_estimate_decides_as_exact_knowledge() -> None:
    jobs = drawn()
    exact, perfect = (
        rota.simulate(jobs, CLUSTER, "srsf", durations=each) for each in ("exact", Durations("noisy", r2=1))
    )
    assert exact.metrics == perfect.metrics


class Asks(rota.Scheduler):
    needs = Needs(durations="unused")

    def plan(self, view):
        return view.first_fit(view.rank(view.remaining_s))


def test_a_scheduler_that_says_that_it_does_not_use_durations_is_not_shown_them() -> None:
    with pytest.raises(ConfigError, match=r"view\.remaining: this scheduler knows no durations"):
        rota.simulate(drawn(), CLUSTER, Asks())


def test_a_scheduler_that_needs_durations_is_marked_as_a_reference() -> None:
    found = rota.simulate(drawn(), CLUSTER, "srtf", durations="none")
    assert found.knows == "exact"
    assert str(found).splitlines()[0].split()[-1] == "knows"
    assert rota.simulate(drawn(), CLUSTER, "las", durations="none").row()["knows"] == "none"


@pytest.mark.parametrize("wrong", ["all", 3, None])
def test_what_cannot_be_known_is_refused(wrong) -> None:
    with pytest.raises(ConfigError, match="unknown durations"):
        rota.simulate(drawn(), CLUSTER, "srtf", durations=wrong)
    with pytest.raises(ConfigError, match="r2 is 2"):
        Durations("noisy", r2=2)
