"""Traces in a format of the user's own: a function of an open file."""

import gzip
import io
import sys

import numpy as np
import pandas as pd
import pytest

import rota
from rota.core.errors import ConfigError, TraceError

READER = """
def read_mine(file, gpus=1):
    for line in file:
        name, submit, minutes = line.split()
        yield {"id": name, "submit_s": float(submit), "gpus": gpus, "duration_s": 60 * float(minutes)}
"""
LINES = "b 30 2\na 0 1.5\n"


def read_mine(file, gpus=1):
    for line in file:
        name, submit, minutes = line.split()
        yield {"id": name, "submit_s": float(submit), "gpus": gpus, "duration_s": 60 * float(minutes)}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A trace in a folder that has a module `mine`, whatever else has been imported by that name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "mine", None)  # so that what is imported now goes with the test
    del sys.modules["mine"]
    (tmp_path / "mine.py").write_text(READER)
    (tmp_path / "mine.txt").write_text(LINES)
    return tmp_path / "mine.txt"


@pytest.mark.parametrize("reader", ["mine.py:read_mine", "mine:read_mine", read_mine])
def test_a_function_gives_the_jobs_by_name_and_as_it_is(mine, reader):
    jobs = rota.read_trace(mine, reader, options={"gpus": 4})
    assert (jobs.name, jobs.ids) == ("mine", ("a", "b"))
    assert jobs.submit_s.tolist() == [0.0, 30.0]
    assert jobs.duration_s.tolist() == [90.0, 120.0]
    assert jobs.gpus.tolist() == [4.0, 4.0]


def test_it_is_as_if_the_rows_were_in_a_csv(mine, tmp_path):
    """Also what is drawn from the seed, where a row does not say it."""
    rows = [
        {"id": "a", "submit_s": 0, "gpus": 1, "duration_s": 0.1 + 0.2, "model": "bert", "priority": 1},
        {"id": "b", "submit_s": 5, "gpus": np.int64(2), "duration_s": np.float64(7), "model": None},
        {"id": "c", "submit_s": 9, "gpus": 1, "duration_s": 8, "priority": float("nan"), "kinds": ["x", "y"]},
    ]
    text = "id,submit_s,gpus,duration_s,model,priority,kinds\na,0,1,0.30000000000000004,bert,1,\n"
    (tmp_path / "same.csv").write_text(text + "b,5,2,7,,,\nc,9,1,8,,,x|y\n")
    ours = rota.read_trace(mine, lambda file: rows, seed=3, draw_models=True)
    same = rota.read_trace(tmp_path / "same.csv", seed=3, draw_models=True)
    assert (ours.ids, ours.models, ours.kinds, ours.notes) == (same.ids, same.models, same.kinds, same.notes)
    for column in ("submit_s", "gpus", "duration_s", "iterations", "priority", "startup_s", "model"):
        assert np.array_equal(getattr(ours, column), getattr(same, column)), column


def test_a_frame_or_a_workload_is_as_good(mine):
    def frame(file):
        table = pd.read_csv(file, sep=" ", names=["id", "submit_s", "duration_s"])
        return table.assign(gpus=2)

    assert rota.read_trace(mine, frame).duration_s.tolist() == [1.5, 2.0]
    whole = rota.synthetic_trace(jobs=5, gpus=8)
    assert rota.read_trace(mine, lambda file: whole) is whole


def test_the_file_is_decompressed_and_has_bytes(mine, tmp_path):
    (tmp_path / "mine.txt.gz").write_bytes(gzip.compress(LINES.encode()))
    assert rota.read_trace(tmp_path / "mine.txt.gz", read_mine).ids == ("a", "b")
    found = rota.read_trace(
        tmp_path / "mine.txt.gz", lambda file: read_mine(io.StringIO(file.buffer.read().decode()))
    )
    assert found.ids == ("a", "b")


@pytest.mark.parametrize(
    ("reader", "options", "said"),
    [
        ("mine.py:read", {}, "mine.py:read: no function 'read' in mine.py; it has read_mine"),
        ("nowhere.py:read", {}, "nowhere.py: cannot be read: No such file"),
        ("9:read", {}, "not the name of a function; write module:function or path/to/file.py:function"),
        ("mine.py:read_mine", {"gpu": 1}, "mine.py:read_mine: unknown option 'gpu'. Did you mean 'gpus'?"),
        (lambda: (), {}, "cannot be called with an open file"),
        ("csv", {"gpus": 1}, "options: gpus: are for a function of yours"),
        (7, {}, "int: is not a function, but int"),
        ("mien", {}, "unknown trace format 'mien'. Known: csv, "),
    ],
)
def test_what_is_no_reader_is_said(mine, reader, options, said):
    with pytest.raises(ConfigError) as found:
        rota.read_trace(mine, reader, options=options)
    assert said in str(found.value)


@pytest.mark.parametrize(
    ("reader", "said"),
    [
        (lambda file: None, "gave a NoneType; yield {'id': …, 'submit_s': …, 'gpus': …, 'duration_s': …}"),
        (lambda file: [("a", 1)], "row 1 is a tuple; yield {'id': …"),
        (lambda file: [], "no jobs in it"),
        (lambda file: [{"id": "a", "submit_s": 0, "gpus": 1}], "row 1: no column 'duration_s'"),
        (
            lambda file: [{"id": n, "submit_s": 0, "gpus": n, "duration_s": 9} for n in (1, "x")],
            "mine.txt: <lambda>: row 2: gpus: 'x' is not a number",
        ),
        (lambda file: 1 / 0, "mine.txt: <lambda>: line"),
    ],
)
def test_rows_that_are_no_jobs_are_said(mine, reader, said):
    with pytest.raises(TraceError) as found:
        rota.read_trace(mine, reader)
    assert said in str(found.value)


def test_a_workload_leaves_nothing_to_draw(mine):
    whole = rota.synthetic_trace(jobs=5, gpus=8)
    with pytest.raises(ConfigError, match="gives a Workload, which says how long its jobs take; leave out"):
        rota.read_trace(mine, lambda file: whole, draw_models=True)
