"""An opportunistic job: it has a slot of its own, and also those that are idle."""

import pytest

from rota.execution.jobs.spec import OpportunisticJob

KINDS = {"job": {"compute_s": 0.005}, "resident": {"compute_s": 0.005}}


@pytest.mark.parametrize(
    ("home", "idle", "most", "given"),
    [
        ((0,), [], 8, (0,)),
        ((0,), [1], 8, (0, 1)),
        ((0,), [1, 2], 8, (0, 1)),  # three are no power of two
        ((0,), [1, 2, 3], 8, (0, 1, 2, 3)),
        ((0,), [1, 2, 3], 2, (0, 1)),
        ((0, 1), [3], 8, (0, 1)),
        ((0, 1), [], 1, (0, 1)),  # what is its own is its own
    ],
)
def test_it_is_given_its_own_slots_and_a_power_of_two_in_all(home, idle, most, given):
    assert OpportunisticJob("a", home, 9.0, most).slots(idle) == given


@pytest.mark.parametrize(
    ("home", "most", "slots", "sizes"),
    [((0,), 8, 7, [1, 2, 4]), ((0, 1), 4, 9, [2, 4]), ((0, 1), 1, 9, [2]), ((0,), 8, 8, [1, 2, 4, 8])],
)
def test_it_is_known_how_many_it_may_be_given(home, most, slots, sizes):
    assert OpportunisticJob("a", home, 9.0, most).sizes(slots) == sizes


def test_idle_slots_are_lent_and_taken_back_on_each_engine(on_each, few, completions):
    """Two slots: one is its own, the other is a job's for a while."""
    jobs = (("job", 1, 40, 0.5),)
    outcome = on_each(few(jobs=jobs, kinds=KINDS, opportunistic=("resident", 4.0)))
    assert outcome.complete
    assert outcome.status.jobs[0].done == 40
    found = completions()
    job = [completed for completed in found if completed.parts[0].job == 0]
    opportunistic = [completed for completed in found if completed.parts[0].job == 1]
    assert {completed.slots for completed in job} == {(1,)}
    assert {completed.slots for completed in opportunistic} == {(0,), (0, 1)}
    began_s, ended_s = job[0].began_s, job[-1].ended_s
    during = [
        completed
        for completed in opportunistic
        if began_s <= completed.began_s and completed.ended_s <= ended_s
    ]
    assert {completed.slots for completed in during} <= {(0,)}
    assert (
        sum(completed.parts[0].iterations for completed in opportunistic)
        == outcome.status.opportunistic.metric
    )
    assert max(completed.began_s for completed in opportunistic) < 4.0
    assert outcome.status.record()["resident"]["iterations"] == outcome.status.opportunistic.done


def test_it_goes_on_where_it_was_after_a_stop(locally, few, completions):
    asked = few(jobs=(("job", 1, 20, 0.2),), kinds=KINDS, opportunistic=("resident", 1.5))
    stopped = locally(asked, asked_to_stop=lambda: len(completions()) >= 6)
    assert not stopped.complete
    done = locally(asked)
    assert done.complete
    opportunistic = [part for completed in completions() for part in completed.parts if part.job == 1]
    assert sum(part.iterations for part in opportunistic) == done.status.opportunistic.metric


REAL = {
    "vision": {"setup": {"model": "feedforward1", "data": "digits", "threads": 1}},
    "adaptive": {
        "setup": {"model": "convnet2", "data": "digits", "threads": 1, "hyper": {"batch_size": 32}},
        "adaptive": {"budget_s": 10.0, "epoch": {"steps": 10}, "changes": ["deepen 1", "deepen 0"]},
    },
}


@pytest.mark.timeout(600)
def test_a_real_network_grows_and_shrinks_with_the_room_on_each_engine(on_each, few):
    jobs = (("vision", 1, 30, 1.5),)
    asked = few(
        jobs=jobs,
        kinds=REAL,
        opportunistic=("adaptive", 10.0),
        site="rota.training.job:networks",
        slice_s=0.2,
    )
    status = on_each(asked).status
    assert status.jobs[0].status == "finished"
    opportunistic = status.opportunistic
    assert (opportunistic.failures, opportunistic.why) == (0, "")
    whats = [note["what"] for note in opportunistic.notes]
    assert whats[0] == "up"  # nobody else is there at first
    decided = [note["chosen"] for note in opportunistic.notes if note["what"] == "decided"]
    assert decided == ["deepen 1", "deepen 0"][: len(decided)]
    assert decided
    assert "down" in whats  # the job came
    assert opportunistic.metric > 0.1
