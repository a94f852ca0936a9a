"""What ran where, from when to when."""

from rota.core.timeline import Arrived, Migrated, Started
from rota.results.timeline_pass import segments


def rows(cut, timeline):
    slots = [tuple(timeline.slots[b : b + n].tolist()) for b, n in zip(cut.begin, cut.gpus, strict=True)]
    return list(
        zip(
            cut.job.tolist(),
            cut.start_s.tolist(),
            cut.end_s.tolist(),
            slots,
            cut.step_s.tolist(),
            strict=True,
        )
    )


def test_a_segment_lasts_from_a_start_to_a_pause_or_an_end(two_jobs):
    timeline = two_jobs[0]
    assert rows(segments(timeline), timeline) == [
        (0, 0, 2, (0, 1), 1.0),
        (1, 2, 6, (0,), 1.0),
        (0, 6, 14, (0, 1), 1.0),
    ]


def test_a_move_cuts_a_segment_and_a_change_of_pace_only_if_asked_for(shared_slots):
    timeline = shared_slots[0]
    b = [(1, 1, 5, (0,), 2.0), (1, 5, 9, (1,), 1.0)]
    c = (2, 1, 5, (1,), 1.0)
    assert rows(segments(timeline), timeline) == [(0, 1, 7, (0,), 2.0), b[0], c, b[1]]
    by_step_time = [(0, 1, 5, (0,), 2.0), b[0], c, b[1], (0, 5, 7, (0,), 1.0)]
    assert rows(segments(timeline, by_step_time=True), timeline) == by_step_time


def test_a_segment_without_length_is_left_out_and_an_open_one_ends_with_the_timeline(write_down):
    timeline = write_down(Arrived(0, 0), Started(1, 0, 1.0, (0,)), Migrated(1, 0, 1.0, (1,)), Arrived(4, 1))
    assert rows(segments(timeline), timeline) == [(0, 1, 4, (1,), 1.0)]


def test_a_window_cuts_what_crosses_its_edges(two_jobs):
    timeline = two_jobs[0]
    assert rows(segments(timeline).between(3, 7), timeline) == [(1, 3, 6, (0,), 1.0), (0, 6, 7, (0, 1), 1.0)]


def test_nothing_that_ran_gives_no_segments(write_down):
    assert len(segments(write_down(Arrived(0, 0), Arrived(1, 1)))) == 0
    assert len(segments(write_down())) == 0
