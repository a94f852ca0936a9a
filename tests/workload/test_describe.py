"""What is said about a workload; four jobs whose numbers can be worked out by hand."""

import pytest

from rota.core.errors import ConfigError
from rota.workload.describe import WorkloadShare, describe, readable, text
from rota.workload.jobs import Workload, workload


@pytest.fixture
def four() -> Workload:
    return workload(
        "four",
        ["a", "b", "c", "d"],
        [0.0, 3600.0, 3600.0, 7200.0],
        [1, 2, 8, 1],
        ["bert", "dqn", "bert", "bert"],
        duration_s=[3600.0, 7200.0, 3600.0, 1800.0],
        iteration_s=[1.0, 1.0, 1.0, 1.0],
    )


def test_numbers_worked_out_by_hand(four):
    described = describe(four, gpus=4)
    assert described.jobs == 4
    assert described.gpu_hours == 13.5  # 1 + 4 + 8 + 0.5
    assert described.span_s == 7200.0
    assert described.jobs_per_hour == 1.5  # 3 gaps in 2 h
    assert described.load == 13.5 / 8
    assert described.gang_sizes == (
        WorkloadShare("1", 2, 1.5),
        WorkloadShare("2", 1, 4.0),
        WorkloadShare("8", 1, 8.0),
    )
    assert described.models == (WorkloadShare("bert", 3, 9.5), WorkloadShare("dqn", 1, 4.0))
    assert described.duration_s["mean"] == 4050.0
    assert described.duration_s["min"] == 1800.0
    assert described.duration_s["p50"] == 3600.0
    assert described.duration_s["max"] == 7200.0


def test_without_a_cluster_there_is_no_load(four):
    assert describe(four).load is None


def test_jobs_that_all_arrive_at_once_have_no_rate_and_no_load(four):
    described = describe(four.head(1), gpus=4)
    assert described.span_s == 0.0
    assert described.jobs_per_hour is None
    assert described.load is None
    assert "all at once" in text(described)


def test_fractions_have_their_own_size():
    jobs = workload("f", ["a", "b"], [0, 1], [0.25, 1], ["bert", "bert"], duration_s=[9, 9])
    assert [share.name for share in describe(jobs).gang_sizes] == ["0.25", "1"]


def test_a_cluster_without_gpus_is_an_error(four):
    with pytest.raises(ConfigError, match="gpus is 0; it must be at least 1"):
        describe(four, gpus=0)


def test_the_text(four):
    assert text(describe(four, gpus=4)) == (
        "four: 4 jobs, 13.5 GPU-hours\n"
        "arrivals   over 2.0 h, 1.50 jobs per hour\n"
        "durations  mean 67.5 min, min 30.0 min, p1 30.9 min, p10 39.0 min, p25 52.5 min, p50 60.0 min, "
        "p75 75.0 min, p90 102.0 min, p99 118.2 min, max 2.0 h\n"
        "load       1.688 on 4 GPUs\n"
        "\n"
        "GPUs        jobs      GPU-hours\n"
        "1              2            1.5\n"
        "2              1            4.0\n"
        "8              1            8.0\n"
        "\n"
        "model       jobs      GPU-hours\n"
        "bert           3            9.5\n"
        "dqn            1            4.0"
    )


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0.0 s"), (119, "119.0 s"), (120, "2.0 min"), (9000, "2.5 h"), (1e6, "11.6 d")]
)
def test_durations_are_said_in_the_unit_that_suits_them(seconds, words):
    assert readable(seconds) == words
