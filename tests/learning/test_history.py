"""How learning went, as CSV and for TensorBoard."""

import math
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboardX.proto.event_pb2 import Event

from rota.core.errors import InputError
from rota.learning.files import (
    EVENTS,
    HistoryRow,
    read_history,
    write_events,
    write_history,
)
from rota.learning.files import (
    HISTORY as FILE,
)
from rota.learning.learner import ROWS, window

NUMBERS = st.floats(allow_nan=False)
HISTORY = [
    HistoryRow(0, 64, -0.5, 1.0, 0.3, 4.0, 0.01, 1.0),
    HistoryRow(0, 128, -0.25, 1.5, 0.4, 3.0, 0.005, 1.0),
    HistoryRow(1, 32, 0.75, 2.0, 0.5, 2.0, 0.01, 10.0),
    HistoryRow(2, 16, 0.5, 2.5, 0.6, 1.0, 0.01, 9.0),
]


def test_a_short_stage_has_a_row_per_update():
    assert [window(updates) for updates in (1, 999, 1000)] == [1, 1, 1]
    assert [window(updates) for updates in (1001, 2000, 2001)] == [2, 2, 3]


@given(st.integers(1, 10**9))
def test_no_stage_has_more_rows_than_there_may_be(updates):
    """And with windows any smaller, it would."""
    size = window(updates)
    assert math.ceil(updates / size) <= ROWS
    assert size == 1 or math.ceil(updates / (size - 1)) > ROWS


def test_the_file_is_plain_to_read(tmp_path):
    write_history(tmp_path, HISTORY[:1])
    assert (tmp_path / FILE).read_text().splitlines() == [
        "stage,episodes,objective,reward,accuracy,entropy,lr,temperature",
        "0,64,-0.5,1.0,0.3,4.0,0.01,1.0",
    ]


@given(st.lists(st.builds(HistoryRow, st.integers(0, 9), st.integers(0, 10**12), *[NUMBERS] * 6), max_size=5))
def test_rows_come_back_as_they_were(rows):
    with tempfile.TemporaryDirectory() as folder:
        write_history(Path(folder), rows)
        found = read_history(Path(folder), HistoryRow)
    assert found == rows
    assert all(type(value) is int for row in found for value in row[:2])


def test_what_is_not_a_number_comes_back_as_none(tmp_path):
    write_history(tmp_path, [HISTORY[0]._replace(objective=math.nan, reward=math.inf)])
    (row,) = read_history(tmp_path, HistoryRow)
    assert math.isnan(row.objective)
    assert row.reward == math.inf


def test_a_history_without_rows_is_one(tmp_path):
    write_history(tmp_path, [])
    assert read_history(tmp_path, HistoryRow) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0,64", "0,x", r"updates.csv: line 2: episodes: 'x' is not a number"),
        ("entropy,", "", r"updates.csv: line 1: no column 'entropy'"),
        (",1.0\n", "\n", r"updates.csv: line 2: 7 fields; expected 8"),
    ],
)
def test_a_damaged_file_is_an_error(tmp_path, old, new, message):
    write_history(tmp_path, HISTORY[:1])
    path = tmp_path / FILE
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        read_history(tmp_path, HistoryRow)


def test_no_file_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"updates.csv: cannot be read: No such file"):
        read_history(tmp_path, HistoryRow)


def events(folder: Path) -> list[tuple[str, int, float]]:
    """Tag, step and value of all that is in it: records of length, checksum, event, checksum."""
    (path,) = (folder / EVENTS).iterdir()
    content, found, at = path.read_bytes(), [], 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        event = Event.FromString(content[at + 12 : at + 12 + length])
        found += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
        at += 12 + length + 4
    return found


def test_tensorboard_shows_all_of_it_with_stages_one_after_the_other(tmp_path):
    """The first stage ends at 128, the second 32 later, the third begins there."""
    write_events(tmp_path, iter(HISTORY))
    found = events(tmp_path)
    names = [*HistoryRow._fields[2:]]
    assert [tag for tag, *_ in found] == [f"learning/{name}" for name in names] * 4
    assert [step for _, step, _ in found] == [step for step in (64, 128, 160, 176) for _ in names]
    assert [value for *_, value in found] == pytest.approx([value for row in HISTORY for value in row[2:]])


def test_what_is_shown_later_begins_where_it_should(tmp_path):
    """Only rows of a later stage: those before are not known, so counting begins at their own."""
    write_events(tmp_path, HISTORY[2:])
    assert [step for tag, step, _ in events(tmp_path) if tag == "learning/lr"] == [32, 48]
