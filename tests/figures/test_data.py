"""The numbers behind the figures."""

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.core.timeline import EventKind
from rota.figures.groups import groups
from rota.figures.jobs import compare, jct_curves, load_curves, load_of
from rota.results.timeline_pass import Series

HOUR_S = 3600.0


def test_runs_of_the_same_jobs_on_the_same_cluster_are_compared(make_run, jobs_of):
    other = jobs_of(
        (0, 1, 3600), (0, 1, 7200), (0, 1, 10800), models=("bert", "vgg16", "bert"), name="Other Trace!"
    )
    runs = [make_run("a"), make_run("b", workload=other), make_run("c", "fifo")]
    found = groups(runs)
    assert [(group.name, group.title) for group in found] == [
        ("by-hand-3-jobs-2-gpus", "by hand: 3 jobs on 2 GPUs"),
        ("other-trace-3-jobs-2-gpus", "Other Trace!: 3 jobs on 2 GPUs"),
    ]
    assert [drawn.run.scheduler for drawn in found[0].runs] == ["fifo", "srtf"]


def test_groups_that_would_have_the_same_name_are_numbered(make_run, jobs_of):
    later = jobs_of((0, 2, 3600), (0, 1, 7200), (0, 1, 10800), models=("bert", "vgg16", "bert"))
    names = [group.name for group in groups([make_run("a"), make_run("b", workload=later)])]
    assert names == ["by-hand-3-jobs-2-gpus", "by-hand-3-jobs-2-gpus-2"]


def test_runs_come_in_the_order_of_the_colours(three):
    assert [drawn.label for drawn in three.runs] == ["fifo", "srtf", "mine"]


def test_runs_of_one_scheduler_are_told_apart_by_their_folders(make_run):
    (group,) = groups([make_run("one/srtf/x"), make_run("two/srtf/x"), make_run("fifo", "fifo")])
    assert [(c.label, c.twin, c.file_name) for c in group.runs] == [
        ("fifo", 0, "fifo"),
        ("srtf (one)", 0, "srtf-one"),
        ("srtf (two)", 1, "srtf-two"),
    ]


def test_a_run_is_found_by_label_or_scheduler(make_run, three):
    assert three.find("mine").label == "mine"
    assert three.find(None).label == "srtf"
    (twins,) = groups([make_run("one"), make_run("two")])
    assert twins.find("srtf").label == "srtf (one)"
    assert twins.find("srtf (two)").label == "srtf (two)"
    with pytest.raises(InputError, match=r"unknown scheduler 'sttf'\. Did you mean 'srtf'\?"):
        three.find("sttf")


def test_without_srtf_the_first_is_the_reference(make_run):
    (group,) = groups([make_run("a", "themis"), make_run("b", "fifo")])
    assert group.find(None).label == "fifo"


def test_the_distribution_of_completion_times(three):
    fifo, srtf, _ = jct_curves(three)
    assert (srtf.jct_s / HOUR_S).tolist() == [1, 3, 6]
    assert (fifo.jct_s / HOUR_S).tolist() == [3, 5, 6]
    assert srtf.share.tolist() == pytest.approx([1 / 3, 2 / 3, 1])
    assert srtf.mean_s == pytest.approx(10 / 3 * HOUR_S)


def test_metrics_relative_to_one_scheduler(three):
    average, tail, makespan = compare(three.runs, three.find("srtf"))
    assert average.metric == "average JCT"
    assert [value_s / HOUR_S for value_s in average.values_s] == pytest.approx([14 / 3, 10 / 3, 11 / 3])
    assert average.ratios == pytest.approx([1.4, 1.0, 1.1])
    assert tail.ratios == makespan.ratios == [1, 1, 1]


def test_makespans_of_a_trace_that_begins_late_count_from_its_first_job(make_run, jobs_of, timeline_of):
    late = jobs_of((1.7e9, 1, 3600), models=("bert",))

    def ended(after_s):
        arrived, started = (1.7e9, EventKind.ARRIVED, 0, ()), (1.7e9, EventKind.STARTED, 0, (0,))
        return timeline_of(arrived, started, (1.7e9 + after_s, EventKind.FINISHED, 0, ()))

    runs = [make_run("f", "fifo", workload=late, timeline=ended(2 * HOUR_S))]
    runs += [make_run("s", "srtf", workload=late, timeline=ended(HOUR_S))]
    (group,) = groups(runs)
    *_, makespan = compare(group.runs, group.find("srtf"))
    assert (makespan.values_s, makespan.ratios) == ([2 * HOUR_S, HOUR_S], [2.0, 1.0])


def test_the_queue_and_the_use_of_slots_in_equal_intervals(three):
    fifo, srtf, _ = load_curves(three, bins=3)
    assert (srtf.edges_s / HOUR_S).tolist() == [0, 2, 4, 6]
    assert srtf.waiting.tolist() == pytest.approx([1.5, 0.5, 0])  # two wait for 1 h, one for 2 h more
    assert fifo.waiting.tolist() == pytest.approx([2, 1.5, 0.5])
    assert srtf.utilisation.tolist() == pytest.approx([0.5, 0.5, 0.5])


def test_after_its_end_a_run_has_no_load():
    series = Series(*np.array([[0.0, 4.0], [1, 0], [1, 0], [2, 0], [4, 4]]))
    waiting, utilisation = load_of(series, np.array([0.0, 2.0, 6.0, 8.0]))
    assert waiting.tolist() == pytest.approx([1, 0.5, np.nan], nan_ok=True)
    assert utilisation.tolist() == pytest.approx([0.5, 0.5, np.nan], nan_ok=True)
