"""Paths in a file start at its folder, those in flags where the user is."""

from pathlib import Path

import pytest

from rota.config.grid import expand
from rota.config.load import override, placed

FOLDER, HERE = Path("/configs/run"), Path("/home/me")
KEYS = ("workload.trace", "kinds.*.agent")
TABLE = {"workload": {"trace": "jobs.csv", "jobs": 3}, "kinds": {"a": {"agent": "x"}, "b": {"agent": "y"}}}


def test_paths_of_a_file_start_at_its_folder():
    assert placed(TABLE, KEYS, FOLDER) == {
        "workload": {"trace": "/configs/run/jobs.csv", "jobs": 3},
        "kinds": {"a": {"agent": "/configs/run/x"}, "b": {"agent": "/configs/run/y"}},
    }


def test_paths_of_flags_start_where_the_user_is():
    found = placed(TABLE, KEYS, FOLDER, ["kinds.b.agent=y", "workload.jobs=3"], HERE)
    assert found["kinds"] == {"a": {"agent": "/configs/run/x"}, "b": {"agent": "/home/me/y"}}
    assert found["workload"]["trace"] == "/configs/run/jobs.csv"


def test_a_flag_may_set_a_whole_table():
    found = placed(TABLE, KEYS, FOLDER, ["kinds.b={agent='y'}"], HERE)
    assert found["kinds"] == {"a": {"agent": "/configs/run/x"}, "b": {"agent": "/home/me/y"}}


@pytest.mark.parametrize(
    "flag",
    [
        "grid.workload.trace=['jobs.csv']",
        'grid."workload.trace"=["jobs.csv"]',
        "grid={workload={trace=['jobs.csv']}}",
    ],
)
def test_paths_that_a_flag_lets_a_grid_vary_start_where_the_user_is(flag):
    (point,) = expand(override({"workload": {"trace": "jobs.csv"}}, [flag]))
    assert placed(point.table, KEYS, FOLDER, [flag], HERE) == {"workload": {"trace": "/home/me/jobs.csv"}}
    assert placed(TABLE, KEYS, FOLDER, ["grid.workload.jobs=[1, 2]"], HERE) == placed(TABLE, KEYS, FOLDER)


def test_absolute_paths_stay():
    assert placed({"workload": {"trace": "/data/a.csv"}}, KEYS, FOLDER) == {
        "workload": {"trace": "/data/a.csv"}
    }


def test_what_is_not_there_or_not_a_text_is_left_to_whoever_binds_it():
    odd = {"workload": 3, "kinds": {"a": {"agent": 1}, "b": 2}}
    assert placed(odd, KEYS, FOLDER) == odd
