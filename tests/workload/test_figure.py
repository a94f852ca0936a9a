"""The figure of a trace: its numbers, not its pixels."""

import io

import numpy as np
import pytest

from rota.figures.page import save
from rota.figures.trace import arrivals, durations, gangs, models, trace_figure
from rota.workload.describe import WorkloadShare, describe
from rota.workload.jobs import workload
from rota.workload.synthetic import SyntheticConfig, generate


def test_arrivals_are_counted_over_a_round_length_of_time():
    jobs = workload("a", ["a", "b", "c"], [10, 70, 140], [1] * 3, ["bert"] * 3, duration_s=[1] * 3)
    counted = arrivals(jobs)
    assert counted.per == "minute"
    assert counted.unit == "hours"
    assert counted.jobs.tolist() == [1.0, 1.0, 1.0]  # 0, 60 and 130 s after the first
    assert counted.edges == pytest.approx(np.arange(4) / 60)


@pytest.mark.parametrize(
    ("span_s", "per"),
    [
        (0, "minute"),
        (3600, "minute"),
        (86400, "hour"),
        (10 * 86400, "6 h"),
        (100 * 86400, "day"),
        (9e9, "801 days"),
    ],
)
def test_every_job_is_counted_whatever_the_span(span_s, per):
    jobs = workload("a", ["a", "b"], [0, span_s], [1, 1], ["bert"] * 2, duration_s=[1, 1])
    counted = arrivals(jobs)
    assert counted.per == per
    assert counted.jobs.sum() == 2
    assert len(counted.jobs) <= 132


def test_shares_of_jobs_and_gpu_time_by_duration():
    jobs = workload("a", ["a", "b"], [0, 1], [1, 2], ["bert"] * 2, duration_s=[30, 10], iteration_s=[1, 1])
    shares = durations(jobs)
    assert shares.seconds.tolist() == [10.0, 30.0]
    assert shares.of_jobs.tolist() == [0.5, 1.0]
    assert shares.of_gpu_time == pytest.approx([0.4, 1.0])


def test_fractions_of_a_gpu_share_a_bar():
    gpus = [0.25, 0.5, 1.0]
    jobs = workload(
        "a", ["a", "b", "c"], [0] * 3, gpus, ["bert"] * 3, duration_s=[3600] * 3, iteration_s=[1] * 3
    )
    assert gangs(describe(jobs)) == [WorkloadShare("below 1", 2, 0.75), WorkloadShare("1", 1, 1.0)]


def test_models_beyond_the_tenth_share_a_bar():
    names = [f"m{number}" for number in range(12)]
    own = {"duration_s": [3600] * 12, "iteration_s": [1] * 12, "stages_s": np.zeros((3, 12))}
    shown = models(describe(workload("a", names, range(12), [1] * 12, names, **own)))
    assert len(shown) == 10
    assert shown[-1] == WorkloadShare("3 others", 3, 3.0)


def test_the_figure_has_four_labelled_panels_and_is_a_png():
    figure = trace_figure(generate(SyntheticConfig(jobs=30)))
    assert [axes.get_title() for axes in figure.axes] == ["Arrivals", "Durations", "Gang sizes", "Models"]
    assert all(axes.get_xlabel() for axes in figure.axes)
    stream = io.BytesIO()
    save(figure, stream)
    assert stream.getvalue().startswith(b"\x89PNG")


def test_a_single_job_can_be_drawn():
    save(trace_figure(workload("a", ["a"], [0], [1], ["bert"], duration_s=[60])), io.BytesIO())


def test_durations_that_are_nearly_alike_have_marks_too():
    jobs = workload("a", ["a", "b"], [0, 1], [1, 1], ["bert"] * 2, duration_s=[1000, 2000])
    axes = trace_figure(jobs).axes[1]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["17 min", "33 min"]
