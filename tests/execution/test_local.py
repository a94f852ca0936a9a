"""Workers on this machine keep the contract that controllers rely on."""

import os
import signal
import time
from pathlib import Path

import pytest

from rota.execution.assignments import (
    Assignment,
    Done,
    FailedAnswer,
    answer_line,
    checkpoint_info,
    parse_assignment,
)
from rota.execution.engine import Answered, Died, WorkerSetup, parse_answer
from rota.execution.local import LocalConfig, LocalSlot, LocalSlotConfig, _environment


@pytest.fixture
def hire(paths):
    """Two workers; ended after the test."""
    paths.make()
    paths.checkpoints.claim("run")
    config = LocalConfig((LocalSlotConfig(count=2, cores=0),))
    hired = []

    def make(trial):
        hired.append(config.workers(config.cluster(), WorkerSetup(trial, {}, 0, paths)))
        return hired[-1]

    yield make
    for each in hired:
        each.close()


@pytest.fixture
def workers(hire):
    """For trials that do nothing."""
    return hire("rota.execution.idle:idle")


def assignment(trial, version, source=None, **more):
    hyper = {"lr": 0.5, **more}
    return Assignment(
        checkpoint_info(trial, version, 10, hyper, (), source.make if source else None, "run"),
        source and source.make,
    )


def heard(workers, count):
    messages = []
    while len(messages) < count:
        messages += workers.wait(5.0)
    return messages


def test_assignments_are_answered_one_after_the_other(workers):
    assert workers.nodes() == [0]
    first = assignment(0, 1)
    second = assignment(0, 2, first)
    for each in (first, second):
        workers.send(1, each)
    messages = heard(workers, 2)
    assert [(message.slot, message.answer.digest, message.answer.metric) for message in messages] == [
        (1, first.make.digest, 5.0),
        (1, second.make.digest, 10.0),
    ]


def test_an_assignment_that_is_given_again_is_answered_from_its_checkpoint(workers):
    workers.send(0, assignment(0, 1))
    (first,) = heard(workers, 1)
    workers.send(1, assignment(0, 1))
    (again,) = heard(workers, 1)
    assert (first.answer.again, again.answer.again) == (False, True)
    assert again.answer.metric == first.answer.metric
    assert again.answer.spent.training_s == first.answer.spent.training_s
    workers.send(1, assignment(0, 1, more=1.0))
    (other,) = heard(workers, 1)
    assert not other.answer.again  # of that name, but made in another way


def test_a_worker_that_was_killed_is_heard_of_and_the_next_assignment_starts_another(workers):
    workers.nodes()
    first, second = workers.pids()
    os.kill(first, signal.SIGKILL)
    (died,) = heard(workers, 1)
    assert isinstance(died, Died)
    assert (died.slot, "SIGKILL" in died.why) == (0, True)
    workers.send(0, assignment(0, 1))
    (answered,) = heard(workers, 1)
    assert isinstance(answered, Answered)
    assert second in workers.pids()
    assert first not in workers.pids()


def test_waiting_ends_when_its_time_is_over(workers):
    workers.nodes()
    assert workers.wait(0.01) == []


def test_after_closing_no_process_is_left(workers):
    workers.nodes()
    pids = workers.pids()
    workers.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


FORKS = """
    import os, signal, time
    from pathlib import Path
    from rota.execution.idle import Idle

    class Forks(Idle):
        def train(self, steps, hyper, changes):
            child = os.fork()
            if not child:
                time.sleep(600)
                os._exit(0)
            Path(__file__).with_name("child").write_text(str(child))
            if hyper["dies"]:
                os.kill(os.getpid(), signal.SIGKILL)
            super().train(steps, hyper, changes)

    def make(settings, seed) -> Forks:
        return Forks(0.0)
"""


@pytest.mark.parametrize("dies", [True, False])
def test_what_a_worker_has_started_ends_with_it_and_does_not_hide_that_it_died(
    hire, trial_module, tmp_path, dies
):
    workers = hire(trial_module(FORKS))
    workers.nodes()
    workers.send(0, assignment(0, 1, dies=dies))
    (message,) = heard(workers, 1)
    assert isinstance(message, Died if dies else Answered)
    if dies:
        assert (message.slot, "SIGKILL" in message.why) == (0, True)
    workers.close()
    child = Path(f"/proc/{(tmp_path / 'child').read_text()}/stat")
    until_s = time.monotonic() + 100
    while child.exists() and child.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until_s, "a child is left"
        time.sleep(0.01)


@pytest.mark.parametrize(("said", "meant"), [(None, "lo"), ("eth1", "eth1")])
def test_gangs_meet_on_the_loopback_unless_another_network_is_named(monkeypatch, said, meant):
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    if said:
        monkeypatch.setenv("GLOO_SOCKET_IFNAME", said)
    assert _environment(LocalSlot())["GLOO_SOCKET_IFNAME"] == meant


@pytest.mark.parametrize("over", [None, (3, 4)])
def test_assignments_are_a_line_each_and_come_back_as_they_were(over):
    source = assignment(0, 1, name="\n\"quoted\" 'é' ..")
    wanted = Assignment(assignment(0, 2, source).make, source.make, (source.make, None), over)
    assert wanted.line().count(b"\n") == 1
    assert parse_assignment(wanted.line()) == wanted


def test_answers_are_a_line_each_and_come_back_as_they_were():
    for answer in (
        Done("x", 0.1 + 0.2),
        FailedAnswer("y", "Traceback\n  …"),
        FailedAnswer("z", "full", no_room=True),
    ):
        assert answer_line(answer).count(b"\n") == 1
        assert parse_answer(answer_line(answer)) == answer
