"""The table that a simulation ends in."""

import re
from dataclasses import replace

from rota.results.metrics import Metrics, MetricsRow, table


def metrics(avg_jct_s):
    return Metrics(
        jobs=3, avg_jct_s=avg_jct_s, p50_jct_s=60.0, p99_jct_s=120.0, makespan_s=3600.0, queueing_s=30.0,
        utilisation=0.5, queue_length=1.0, blocking_index=0.1, fairness_mean=1.25, fairness_worst=2.0,
        preemptions=1234, migrations=0,
    )  # fmt: skip


def test_all_times_are_in_the_unit_of_the_longest_mean():
    header, first, second = table(
        [MetricsRow("srtf", metrics(90.0), 0.01), MetricsRow("fifo", metrics(600.0), 0.0123)]
    ).splitlines()
    assert re.split(r" {2,}", header) == [
        "scheduler", "avg JCT [min]", "p50 [min]", "p99 [min]", "makespan [min]", "queueing [min]",
        "utilisation", "fairness", "preemptions", "wall [s]",
    ]  # fmt: skip
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
    assert second.split()[4] == "60.00"


def test_columns_line_up():
    lines = table(
        [MetricsRow("a", metrics(1.0), 1.0), MetricsRow("a-longer-name", metrics(7200.0), 22.5)]
    ).splitlines()
    assert len({len(line) for line in lines}) == 1


def test_failed_jobs_have_a_column_if_there_are_any():
    fine, lost = metrics(60.0), replace(metrics(60.0), failed=2)
    assert "failed" not in table([MetricsRow("a", fine, 1.0)])
    header, first, second = table([MetricsRow("a", fine, 1.0), MetricsRow("b", lost, 1.0)]).splitlines()
    assert header.endswith("failed (not in JCT, fairness)")
    assert first.endswith("   0 of 3")
    assert second.endswith("   2 of 3")
