"""A long timeline is the same whether it is in memory or not."""

import math
import os

import pytest

from rota.core.population.events import Cloned, Idled, Reported
from rota.execution.folder import Spool
from rota.execution.journal import NotWritten


def test_events_come_in_their_order_as_often_as_one_likes_wherever_they_are(tmp_path):
    events = [Idled(0.1 * number, number) for number in range(25)]
    events[7] = Cloned(0.7, 1, 2, {"lr": 1 / 3}, ("deepen 0",))
    spool = Spool(tmp_path / "spool", most=10)
    for at in range(0, 25, 5):
        part = events[at : at + 5]
        spool.take(part)
        assert part == []
    assert (tmp_path / "spool").read_text().count("\n") == 15
    assert list(spool) == events
    assert list(spool) == events
    assert len(spool) == 25


def test_what_was_not_measured_stays_so(tmp_path):
    spool = Spool(tmp_path / "spool", most=0)
    spool.take([Reported(1.0, 0, 0, 10, 0.0, 1.0, 0.0, math.nan)])
    assert math.isnan(next(iter(spool)).metric)


def test_what_another_process_left_is_not_taken_for_ours(tmp_path):
    Spool(tmp_path / "spool", most=0).take([Idled(1.0, 0)])
    assert list(Spool(tmp_path / "spool")) == []


def test_it_is_for_the_eyes_of_its_owner_only_and_goes_when_it_is_closed(tmp_path):
    file, before = tmp_path / "spool", os.umask(0)
    try:
        spool = Spool(file, most=0)
        spool.take([Idled(1.0, 0)])
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o600
    spool.close()
    assert not file.exists()
    assert list(spool) == []


def test_a_link_that_others_put_in_its_place_is_not_followed(tmp_path):
    other = tmp_path / "other"
    other.write_text("theirs")
    spool = Spool(tmp_path / "spool", most=0)
    (tmp_path / "spool").symlink_to(other)
    with pytest.raises(NotWritten, match="cannot be written"):
        spool.take([Idled(1.0, 0)])
    assert other.read_text() == "theirs"
