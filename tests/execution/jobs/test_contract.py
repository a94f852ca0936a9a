"""What must be so of jobs on every engine."""

from collections import Counter

import pytest

from rota.core.timeline import Finished, Preempted, Started
from rota.results.metrics import measure


def test_every_job_does_all_its_iterations_once(on_each, few, completions):
    asked = few()
    outcome = on_each(asked)
    assert outcome.complete
    done = Counter()
    for completed in completions():
        for part in completed.parts:
            done[part.job] += part.iterations
    assert [done[job] for job in range(5)] == asked.spec().iterations
    assert [line.metric for line in outcome.status.jobs] == asked.spec().iterations  # what they counted
    assert {line.status for line in outcome.status.jobs} == {"finished"}


def test_its_timeline_is_one_that_a_simulation_could_have(on_each, few):
    asked = few()
    outcome = on_each(asked)
    measured = measure(outcome.timeline, asked.workload, asked.cluster)
    assert measured.metrics.jobs == 5
    assert measured.metrics.makespan_s == pytest.approx(max(line.ended_s for line in outcome.status.jobs))
    events = list(outcome.timeline)
    for job in range(5):
        mine = [event for event in events if getattr(event, "job", None) == job]
        assert isinstance(mine[-1], Finished)
        assert any(isinstance(event, Started) for event in mine)


def test_a_slot_and_a_job_have_one_assignment_at_a_time(on_each, few, completions):
    on_each(few())
    by_slot, by_job = {}, {}
    for completed in completions():
        for key, ends in [(slot, by_slot) for slot in completed.slots] + [
            (p.job, by_job) for p in completed.parts
        ]:
            assert completed.began_s >= ends.get(key, 0.0)
            ends[key] = completed.ended_s


def test_a_gang_has_as_many_slots_as_it_asks_for(on_each, few, completions):
    on_each(few())
    sizes = {part.job: len(completed.slots) for completed in completions() for part in completed.parts}
    assert sizes == {0: 1, 1: 2, 2: 1, 3: 2, 4: 1}


def test_a_job_with_less_to_do_preempts_one_with_more(on_each, few, completions):
    """One slot: a job of a thousand iterations runs when one of ten comes, which is done first."""
    jobs = (("long", 1, 150, 0.0), ("short", 1, 10, 0.3))
    outcome = on_each(few(jobs=jobs, slots=1))
    ends = {event.job: event.at_s for event in outcome.timeline if isinstance(event, Finished)}
    assert ends[1] < ends[0]
    paused = [event for event in outcome.timeline if isinstance(event, Preempted)]
    assert [event.job for event in paused] == [0]
    parts = [(completed, part) for completed in completions() for part in completed.parts if part.job == 0]
    completed = sum(part.iterations for slice, part in parts if slice.ended_s <= paused[0].at_s)
    begun = sum(part.iterations for slice, part in parts if slice.began_s <= paused[0].at_s)
    assert 150 - begun <= paused[0].remaining <= 150 - completed  # of what is under way, a part is done


def test_jobs_of_a_group_share_a_slot(on_each, few, completions):
    """Muri packs one that fetches with one that computes, when both cannot have a slot of their own."""
    kinds = {
        "fetches": {"fetch_s": 0.01, "compute_s": 0.001},
        "computes": {"fetch_s": 0.001, "compute_s": 0.01},
    }
    jobs = (("fetches", 1, 40, 0.0), ("computes", 1, 40, 0.0))
    outcome = on_each(few(jobs=jobs, slots=1, kinds=kinds, scheduler="muri-s"))
    assert outcome.complete
    together = [completed for completed in completions() if len(completed.parts) == 2]
    assert together
    assert all(completed.slots == (0,) for completed in together)
