"""Workers on this machine keep the contract that controllers rely on."""

import os
import signal

import pytest

from rota.execution.answers import parse_answer
from rota.execution.engine import Assignment
from rota.execution.local_config import LocalConfig, LocalSlotConfig
from rota.execution.orders import Done, Order, Undone, answer_line, made, parse_order
from rota.execution.workers import Answered, Died


@pytest.fixture
def workers(books):
    """Two, for trials that do nothing."""
    books.make()
    config = LocalConfig((LocalSlotConfig(count=2, cores=0),))
    found = config.workers(config.fleet(), Assignment("rota.execution.idle:idle", {}, 0, books))
    yield found
    found.close()


def order(trial, version, source=None, **more):
    hyper = {"lr": 0.5, **more}
    return Order(
        made(trial, version, 10, hyper, (), source.make if source else None, "run"), source and source.make
    )


def heard(workers, count):
    messages = []
    while len(messages) < count:
        messages += workers.wait(5.0)
    return messages


def test_orders_are_answered_one_after_the_other(workers):
    assert workers.nodes() == [0]
    first = order(0, 1)
    second = order(0, 2, first)
    for each in (first, second):
        workers.send(1, each)
    messages = heard(workers, 2)
    assert [(message.slot, message.answer.digest, message.answer.metric) for message in messages] == [
        (1, first.make.digest, 5.0),
        (1, second.make.digest, 10.0),
    ]


def test_an_order_that_is_given_again_is_answered_from_its_checkpoint(workers):
    workers.send(0, order(0, 1))
    (first,) = heard(workers, 1)
    workers.send(1, order(0, 1))
    (again,) = heard(workers, 1)
    assert (first.answer.again, again.answer.again) == (False, True)
    assert again.answer.metric == first.answer.metric
    assert again.answer.spent.training_s == first.answer.spent.training_s
    workers.send(1, order(0, 1, more=1.0))
    (other,) = heard(workers, 1)
    assert not other.answer.again  # of that name, but made in another way


def test_a_worker_that_was_killed_is_heard_of_and_the_next_order_starts_another(workers):
    workers.nodes()
    first, second = workers.pids()
    os.kill(first, signal.SIGKILL)
    (died,) = heard(workers, 1)
    assert isinstance(died, Died)
    assert (died.slot, "SIGKILL" in died.why) == (0, True)
    workers.send(0, order(0, 1))
    (answered,) = heard(workers, 1)
    assert isinstance(answered, Answered)
    assert second in workers.pids()
    assert first not in workers.pids()


def test_waiting_ends_when_its_time_is_over(workers):
    workers.nodes()
    assert workers.wait(0.01) == []


def test_after_closing_nobody_is_left(workers):
    workers.nodes()
    pids = workers.pids()
    workers.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("over", [None, (3, 4)])
def test_orders_are_a_line_each_and_come_back_as_they_were(over):
    source = order(0, 1, name="\n\"quoted\" 'é' ..")
    wanted = Order(order(0, 2, source).make, source.make, None, over)
    assert wanted.line().count(b"\n") == 1
    assert parse_order(wanted.line()) == wanted


def test_answers_are_a_line_each_and_come_back_as_they_were():
    for answer in (Done("x", 0.1 + 0.2), Undone("y", "Traceback\n  …"), Undone("z", "full", no_room=True)):
        assert answer_line(answer).count(b"\n") == 1
        assert parse_answer(answer_line(answer)) == answer
