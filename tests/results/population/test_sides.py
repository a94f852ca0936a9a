"""What each side of a comparison took, by hand."""

import json
import re
from dataclasses import replace

import pytest

from rota.core.errors import InputError
from rota.results.population.metrics import (
    FILE,
    ReportedInterval,
    SideRun,
    Sides,
    read_sides,
    spread,
    table,
    write_sides,
)

RUN = SideRun(
    side="rota",
    seed=0,
    slots=2,
    parts=(
        ReportedInterval(100.0, 101.0, 10, 0.5, 7, 0),
        ReportedInterval(100.5, 101.5, 10, 0.6, 8, 1),
        ReportedInterval(102.0, 103.0, 10, 0.7, 7),
        ReportedInterval(102.0, 104.0, 5, 0.4, 8),
    ),
    finals=(0.7, 0.4),
    process_s=9.0,
    cpu_s=6.5,
)
OTHER = replace(RUN, side="Ray Tune, class", slots=3)
SIDES = Sides("2 trials", "bash scripts/compare-tune.sh", (RUN, OTHER))


def test_overhead_is_time_of_slots_that_is_not_work():
    assert RUN.training_s == 4.0
    assert RUN.work_s == 1.0 + 1.0 + 1.0 + 2.0
    assert RUN.overhead_s == (2 * 4.0 - 5.0) / 4
    assert OTHER.overhead_s == (3 * 4.0 - 5.0) / 4


def test_slots_are_in_use_while_a_process_has_parts_to_come():
    assert RUN.used == ((103.0 - 100.0) + (104.0 - 100.5)) / 4.0
    assert RUN.gap_s == (1.0 + 0.5) / 2
    alone = replace(RUN, parts=[part._replace(process=number) for number, part in enumerate(RUN.parts)])
    assert (alone.used, alone.gap_s) == (5.0 / 4.0, None)
    assert "between intervals of a process, ms   –" in table(replace(SIDES, runs=(alone,)))


def test_reports_steps_accuracies_and_processes_are_those_of_the_parts():
    assert (RUN.reports, RUN.steps, RUN.best, RUN.processes) == (4, 35, 0.7, 2)
    assert RUN.final == pytest.approx(0.55)
    assert RUN.beginnings == {0: 0.5, 1: 0.6}


def test_sides_begin_alike_if_trials_of_the_same_seed_report_the_same_first():
    parts = (ReportedInterval(0.0, 1.0, 10, 0.9, 7, 0), *RUN.parts[1:])
    assert SIDES.begin_alike
    assert not replace(SIDES, runs=(RUN, replace(OTHER, parts=parts))).begin_alike
    assert replace(SIDES, runs=(RUN, replace(OTHER, parts=parts, seed=1))).begin_alike


def test_the_table_has_medians_and_where_runs_differ_the_least_and_the_most():
    runs = [replace(RUN, seed=seed, cpu_s=cpu_s) for seed, cpu_s in enumerate((6.5, 20.0, 7.5))]
    rows = [re.split(r"\s{2,}", line) for line in table(replace(SIDES, runs=(*runs, OTHER))).splitlines()]
    assert rows[0] == ["", "rota", "Ray Tune, class"]
    assert ["CPU seconds", "7.5 (6.5 to 20.0)", "6.5"] in rows
    assert ["overhead per report, ms", "750.0", "1,750.0"] in rows
    assert ["… slots in use, on average", "1.62", "1.62"] in rows
    assert ["mean accuracy in the end", "55.0%", "55.0%"] in rows


def test_a_spread_is_the_middle_and_both_ends():
    assert spread([3.0, 1.0, 2.0, 8.0]) == (2.5, 1.0, 8.0)


def test_what_is_written_is_read_back(tmp_path):
    write_sides(tmp_path / "new", SIDES)
    assert read_sides(tmp_path / "new") == SIDES


@pytest.mark.parametrize(
    "found",
    [
        "nonsense",
        json.dumps([]),
        json.dumps({"format": 2}),
        json.dumps({"format": 1, "about": "", "command": "", "runs": [{"parts": []}]}),
        json.dumps({"format": 1, "about": "", "command": "", "runs": [{"parts": [[0, 1, 1, 0.5, 1]]}]}),
    ],
)
def test_what_is_not_a_comparison_is_refused_with_what_to_do(tmp_path, found):
    (tmp_path / FILE).write_text(found)
    with pytest.raises(InputError, match=r"compare\.json: .*compare again: bash scripts/compare-tune\.sh"):
        read_sides(tmp_path)
