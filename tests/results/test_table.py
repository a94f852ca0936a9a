"""The table that a simulation ends in."""

from rota.results.metrics import Metrics
from rota.results.table import Line, table


def metrics(avg_jct_s):
    return Metrics(
        jobs=3, avg_jct_s=avg_jct_s, p50_jct_s=60.0, p99_jct_s=120.0, makespan_s=3600.0, queueing_s=30.0,
        utilisation=0.5, queue_length=1.0, blocking_index=0.1, fairness_mean=1.25, fairness_worst=2.0,
        preemptions=1234, migrations=0,
    )  # fmt: skip


def test_all_times_are_in_the_unit_of_the_longest_mean():
    header, first, second = table(
        [Line("srtf", metrics(90.0), 0.01, 0.0), Line("fifo", metrics(600.0), 0.0123, 1800.0)]
    ).splitlines()
    assert header.split()[:4] == ["scheduler", "avg", "JCT", "[min]"]
    assert first.split() == [
        "srtf",
        "1.50",
        "1.00",
        "2.00",
        "60.00",
        "0.50",
        "50.0%",
        "1.25",
        "1,234",
        "0.010",
    ]
    assert second.split()[1] == "10.00"
    assert second.split()[4] == "30.00"  # from the first submit on


def test_columns_line_up():
    lines = table(
        [Line("a", metrics(1.0), 1.0, 0.0), Line("a-longer-name", metrics(7200.0), 22.5, 0.0)]
    ).splitlines()
    assert len({len(line) for line in lines}) == 1
