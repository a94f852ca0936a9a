"""A long timeline is the same whether it is in memory or not."""

import math

from rota.core.population.events import Cloned, Emptied, Reported
from rota.execution.spool import Spool


def test_events_come_in_their_order_as_often_as_one_likes_wherever_they_are(tmp_path):
    events = [Emptied(0.1 * number, number) for number in range(25)]
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
    Spool(tmp_path / "spool", most=0).take([Emptied(1.0, 0)])
    assert list(Spool(tmp_path / "spool")) == []
