"""Two timelines of a few seconds, compared by hand and by rota."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.errors import InputError
from rota.core.population.events import Grown, Reported
from rota.core.timeline import EventKind
from rota.results.fidelity.aligned import changes_of_networks, jobs_timeline
from rota.results.fidelity.compare import compare
from rota.results.fidelity.text import Limits, over_seeds, record, table
from rota.results.run import read_run


@pytest.fixture
def two_trials(hand):
    return compare(hand.trials(*hand.REAL), hand.trials(*hand.SIMULATED))


def test_makespan_and_completion_times_of_two_trials(two_trials):
    assert two_trials.makespan == (22.0, 23.0)
    assert two_trials.makespan.error_percent == pytest.approx(100 / 22)
    jct = two_trials.jct  # 20 and 22 s, simulated 21 and 23 s
    assert jct.mean == (21.0, 22.0)
    assert jct.p50 == (21.0, 22.0)
    assert jct.p99 == (22.0, 23.0)
    assert jct.off_percent == pytest.approx(100 / 21)
    assert jct.correlation == pytest.approx(1.0)


def test_intervals_of_two_trials(two_trials):
    found = two_trials.intervals
    assert (found.aligned, found.only_real, found.only_simulated) == (4, 0, 0)
    assert found.whole.mean == (10.5, 11.0)  # 10, 12, 10, 10 s; simulated 11, 11, 10, 12 s
    assert found.whole.off_percent == pytest.approx(100 * (1 / 10 + 1 / 12) / 2)  # 1/10, 1/12, 0, 2/10
    assert found.computing.mean == (9.75, 10.5)  # 9, 10, 10, 10 s; simulated 10, 10, 10, 12 s
    assert found.computing.off_percent == pytest.approx(100 * (0 + 1 / 9) / 2)  # 1/9, 0, 0, 2/10
    assert found.same_slot == 0.5


def test_what_differs_apart_from_step_times(two_trials):
    at_pace = two_trials.makespan_at_real_step_time  # of 23 s, as if 10.5 s of computing had been 9.75 s
    assert at_pace == (22.0, pytest.approx(23 * 9.75 / 10.5))


def test_the_pace_of_jobs_is_not_known(hand, tmp_path):
    timeline = jobs_timeline(read_run(hand.write_jobs(tmp_path / "real", *hand.PREEMPTED)))
    found = compare(timeline, timeline)
    assert found.makespan_at_real_step_time is None
    assert "pace" not in table("srtf", found)


def test_both_trials_begin_at_once_and_end_in_the_same_order(two_trials):
    assert two_trials.starts == (True, None)
    assert two_trials.ends == (True, 1.0)


def test_timelines_part_with_the_first_interval_on_another_slot(two_trials):
    assert two_trials.diverged == (10.0, 11.0)  # slot 0 goes on with trial 0, simulated with trial 1


def test_timelines_of_one_slot_part_where_the_order_is_another(hand, tmp_path):
    rows = (
        (100.0, EventKind.ARRIVED, 0, 0.0, ()),
        (102.0, EventKind.ARRIVED, 1, 0.0, ()),
        (102.0, EventKind.STARTED, 1, 1.0, (0,)),
        (106.0, EventKind.FINISHED, 1, 0.0, ()),
        (106.0, EventKind.STARTED, 0, 1.0, (0,)),
        (116.0, EventKind.FINISHED, 0, 0.0, ()),
    )
    real = jobs_timeline(read_run(hand.write_jobs(tmp_path / "real", *hand.PREEMPTED)))
    found = compare(real, jobs_timeline(read_run(hand.write_jobs(tmp_path / "sim", *rows))))
    assert found.diverged == (0.0, 2.0)
    assert found.starts == (False, -1.0)


def test_intervals_of_other_lengths_are_not_compared(hand):
    half = ((1, 1, 25, 12.0, 17.0, 0.0), (1, 1, 25, 17.0, 22.0, 0.0))
    found = compare(hand.trials(*hand.REAL), hand.trials(*hand.REAL[:3], *half))
    assert (found.intervals.aligned, found.intervals.only_real, found.intervals.only_simulated) == (3, 1, 2)
    assert found.makespan.error_percent == 0.0
    assert found.intervals.whole.mean.error_percent == 0.0
    assert found.diverged == (12.0, 12.0)


def test_what_the_simulation_does_not_have_parts_them_where_it_ends(hand):
    found = compare(hand.trials(*hand.REAL), hand.trials(*hand.REAL[:3]))
    assert found.intervals.only_real == 1
    assert found.diverged == (12.0, 20.0)


def test_a_timeline_is_not_off_itself(hand):
    found = compare(hand.trials(*hand.REAL), hand.trials(*hand.REAL))
    for versus in (found.makespan, found.jct.mean, found.jct.p50, found.jct.p99):
        assert versus.error_percent == 0.0
    assert found.jct.off_percent == found.intervals.whole.off_percent == 0.0
    assert found.intervals.computing.off_percent == 0.0
    assert (found.intervals.same_slot, found.diverged) == (1.0, None)


def test_jobs_that_take_a_quarter_longer(hand, tmp_path):
    real = jobs_timeline(read_run(hand.write_jobs(tmp_path / "real", *hand.PREEMPTED)))
    found = compare(real, jobs_timeline(read_run(hand.write_jobs(tmp_path / "sim", *hand.SLOWER))))
    assert found.makespan == (14.0, 17.5)  # since the first submit, at 100 s
    assert found.jct.mean == (9.0, 11.5)  # 14 and 4 s, simulated 17.5 and 5.5 s
    assert found.intervals.unit == "s per iteration"
    assert found.intervals.aligned == 3
    assert found.intervals.whole.mean == (1.0, 1.25)
    assert found.intervals.whole.off_percent == pytest.approx(25.0)
    assert found.intervals.computing is None
    assert found.intervals.same_slot == 1.0
    assert (found.starts, found.ends) == ((True, 1.0), (True, 1.0))
    assert found.diverged is None


def test_a_stretch_counts_by_its_iterations(hand, tmp_path):
    """Of 14 iterations, b's four took 2 s each in place of 1 s: it began 4 s after it was told to."""
    waited = list(hand.PREEMPTED)
    waited[5:] = [
        (110.0, EventKind.FINISHED, 1, 0.0, ()),
        (110.0, EventKind.STARTED, 0, 1.0, (0,)),
        (118.0, EventKind.FINISHED, 0, 0.0, ()),
    ]
    real, simulated = (
        jobs_timeline(read_run(hand.write_jobs(tmp_path / name, *rows)))
        for name, rows in (("real", waited), ("simulated", hand.PREEMPTED))
    )
    found = compare(real, simulated).intervals
    assert found.aligned == 3
    assert found.whole.mean == (pytest.approx((2 * 1 + 8 * 1 + 4 * 2) / 14), 1.0)


def test_a_job_that_starts_once_has_all_its_iterations_in_one_stretch(hand, tmp_path):
    rows = (
        (100.0, EventKind.ARRIVED, 0, 0.0, ()),
        (100.0, EventKind.STARTED, 0, 1.0, (0,)),
        (102.0, EventKind.ARRIVED, 1, 0.0, ()),
        (120.0, EventKind.FINISHED, 0, 0.0, ()),
        (120.0, EventKind.STARTED, 1, 1.0, (0,)),
        (126.0, EventKind.FINISHED, 1, 0.0, ()),
    )
    timeline = jobs_timeline(read_run(hand.write_jobs(tmp_path / "run", *rows)))
    assert [each.whole_s for each in timeline.lives["a"].intervals] == [2.0]
    assert [each.whole_s for each in timeline.lives["b"].intervals] == [1.5]
    other = jobs_timeline(read_run(hand.write_jobs(tmp_path / "other", *hand.PREEMPTED)))
    found = compare(timeline, other)
    assert found.intervals.only_simulated == 1  # a's second stretch
    assert found.ends == (False, -1.0)


def test_a_stretch_in_which_nothing_was_done_is_left_out(hand, tmp_path):
    rows = (
        *hand.PREEMPTED[:3],
        (102.0, EventKind.PAUSED, 0, 10.0, ()),  # all that it had done was lost
        *hand.PREEMPTED[4:7],
        (116.0, EventKind.FINISHED, 0, 0.0, ()),
    )
    timeline = jobs_timeline(read_run(hand.write_jobs(tmp_path / "run", *rows)))
    assert [each.whole_s for each in timeline.lives["a"].intervals] == [1.0]


parts = st.lists(
    st.tuples(st.integers(0, 1), st.floats(0.1, 50.0), st.floats(0.1, 50.0)), min_size=1, max_size=6
)


def drawn(hand, lengths, which):
    """A timeline of one trial per slot, from (slot, seconds, seconds in the other timeline)."""
    at_s, found = {0: 0.0, 1: 0.0}, []
    for slot, *seconds in [(0, 1.0, 1.0), (1, 1.0, 1.0), *lengths]:
        ends_s = at_s[slot] + seconds[which]
        found.append((slot, slot, 50, at_s[slot], ends_s, 0.0))
        at_s[slot] = ends_s
    return hand.trials(*found)


@given(parts)
def test_swapping_both_sides_turns_every_error_round(hand, lengths):
    here, there = drawn(hand, lengths, 0), drawn(hand, lengths, 1)
    one, other = compare(here, there), compare(there, here)
    for name in ("makespan", "mean", "p50", "p99"):
        a, b = (getattr(each, name, None) or getattr(each.jct, name) for each in (one, other))
        assert (a.real, a.simulated) == (b.simulated, b.real)
        assert (1 + a.error_percent / 100) * (1 + b.error_percent / 100) == pytest.approx(1.0)
    assert one.ends == other.ends
    assert one.jct.correlation == pytest.approx(other.jct.correlation)
    assert one.intervals.same_slot == other.intervals.same_slot == 1.0


def test_a_trial_that_only_one_side_has_is_named(hand):
    alone = hand.trials(*(part for part in hand.REAL if part[1] == 0))
    with pytest.raises(InputError, match="trial 1 is missing in the simulated run"):
        compare(hand.trials(*hand.REAL), alone)
    with pytest.raises(InputError, match="trial 1 is missing in the real run"):
        compare(alone, hand.trials(*hand.REAL))


def test_trials_are_not_jobs(hand, tmp_path):
    jobs = jobs_timeline(read_run(hand.write_jobs(tmp_path / "run", *hand.PREEMPTED)))
    with pytest.raises(InputError, match="trials cannot be compared with jobs"):
        compare(hand.trials(*hand.REAL), jobs)


def test_nothing_is_nothing_to_compare(hand):
    with pytest.raises(InputError, match="no trials to compare"):
        compare(hand.trials(), hand.trials())


def test_as_text(two_trials):
    lines = table("finish", two_trials).splitlines()
    assert lines[0] == "finish: 2 trials, 4 intervals aligned"
    assert lines[2].split() == ["real", "simulated", "error"]
    assert lines[3].split() == ["makespan", "[s]", "22.00", "23.00", "+4.5", "%"]
    assert lines[4].split() == ["at", "real", "step", "time", "22.00", "21.36", "-2.9", "%"]
    assert lines[5].split() == ["mean", "JCT", "[s]", "21.00", "22.00", "+4.8", "%"]
    assert lines[8].split() == ["s", "per", "interval", "10.50", "11.00", "+4.8", "%"]
    assert "on the same slot      50% of the intervals" in lines
    assert "timelines diverge     at 10.00 s: a slot gets another interval" in lines
    assert len({line.index("%") for line in lines[3:10]}) == 1


def test_as_plain_values(two_trials):
    found = json.loads(json.dumps(record(two_trials), allow_nan=False))
    assert found["makespan"] == {
        "real_s": 22.0,
        "simulated_s": 23.0,
        "error_percent": pytest.approx(4.545454),
    }
    assert found["jct"]["mean"]["real_s"] == 21.0
    assert found["interval"]["computing"]["simulated_s"] == 10.5
    assert found["decisions"]["ends"] == {"same": True, "tau": 1.0}
    assert found["decisions"]["parted"] == {"real_s": 10.0, "simulated_s": 11.0}


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ((5.0, 8.0), []),
        ((4.0, 8.0), ["makespan is off by +4.5 %, allowed are 4 %"]),
        ((5.0, 4.0), ["mean JCT is off by +4.8 %, allowed are 4 %"]),
        (
            (0.0, 0.0),
            ["makespan is off by +4.5 %, allowed are 0 %", "mean JCT is off by +4.8 %, allowed are 0 %"],
        ),
    ],
)
def test_limits_name_what_exceeds_them(two_trials, limits, said):
    assert Limits(*limits).exceeded(two_trials) == said


def with_outcome(timeline, accuracy, changes):
    return replace(timeline, has_deadline=True, accuracy=accuracy, changes=changes)


def test_accuracies_and_changes_of_networks_are_compared_at_the_deadline(hand):
    real = with_outcome(hand.trials(*hand.REAL), 0.8, ((10.0, 50), (12.0, 100)))
    simulated = with_outcome(hand.trials(*hand.SIMULATED[:1]), 0.75, ((11.0, 50),))
    found = compare(real, simulated)  # trial 1 has not reported until the deadline
    assert (found.count, found.outcome.accuracy, found.outcome.changes) == (1, (0.8, 0.75), (2, 1))
    assert found.outcome.changed_after == (75.0, 50.0)
    assert "accuracy at the deadline" in table("joint", found)
    assert record(found)["outcome"]["accuracy"] == {"real": 0.8, "simulated": 0.75}
    assert over_seeds([found]) == ""
    other = compare(replace(real, accuracy=0.9), replace(simulated, accuracy=1.0))
    assert over_seeds([found, other]) == (
        "accuracy over 2 seeds: simulated − real +0.0250 on average, 0.0750 apart with the same seed; "
        "two seeds of the real run are 0.1000 apart"
    )


def test_a_change_counts_after_the_steps_that_its_trial_had_reported():
    def report(at_s, trial):
        return Reported(at_s, 0, trial, 40, at_s - 1.0, at_s, 0.0, 0.5)

    events = [
        report(1.0, 0),
        report(2.0, 1),
        Grown(2.0, 0, "deepen 0"),
        report(3.0, 0),
        Grown(4.0, 0, "deepen 1"),
    ]
    assert list(changes_of_networks(events)) == [(2.0, 40), (4.0, 80)]
