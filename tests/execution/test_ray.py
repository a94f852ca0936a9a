"""Workers on Ray keep the contract that controllers rely on, on real nodes that really die."""

import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Joined, NodeFailed, Reported, TrialFailed
from rota.core.population.view import Terms
from rota.execution.assignments import Assignment, FailedAnswer, checkpoint_info
from rota.execution.controller import PopulationSpec, control
from rota.execution.engine import Answered, Died, WorkerSetup
from rota.execution.folder import RunPaths
from rota.execution.ray_config import RayConfig, RaySlotConfig
from rota.execution.starting import CannotStart
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Equal

IDLE = "rota.execution.idle:idle"
STEP_S = 0.02


@pytest.fixture
def hire(ray, paths):
    """Workers for trials that do nothing; ended after the test."""
    paths.make()
    paths.checkpoints.claim("run")
    hired = []

    def make(*slots, trial=IDLE, **more):
        config = RayConfig(ray.address, slots, **more)
        hired.append(config.workers(config.cluster(), WorkerSetup(trial, {}, 0, paths)))
        return hired[-1]

    yield make
    for each in hired:
        each.close()


def assignment(trial, version, source=None):
    return Assignment(
        checkpoint_info(trial, version, 10, {"lr": 0.5}, (), source.make if source else None, "run"),
        source and source.make,
    )


def heard(workers, count):
    messages = []
    while len(messages) < count:
        messages += workers.wait(5.0)
    return messages


def is_there(pid):
    return Path(f"/proc/{pid}").exists()


def test_an_actor_answers_in_order_and_is_replaced_when_it_was_killed(hire):
    workers = hire(RaySlotConfig(node="fast"), RaySlotConfig(node="slow"))
    assert workers.nodes() == [0, 1]
    assert workers.wait(0.01) == []
    first, second = workers.pids()
    early = assignment(0, 1)
    late = assignment(0, 2, early)
    for each in (early, late):
        workers.send(1, each)
    assert [
        (message.slot, message.answer.digest, message.answer.metric) for message in heard(workers, 2)
    ] == [
        (1, early.make.digest, 5.0),
        (1, late.make.digest, 10.0),
    ]
    workers.send(0, early)  # on another node, from the checkpoint
    (again,) = heard(workers, 1)
    assert (again.slot, again.answer.again) == (0, True)

    os.kill(first, signal.SIGKILL)
    workers.send(0, assignment(1, 1))
    (died,) = heard(workers, 1)
    assert isinstance(died, Died)
    assert died.slot == 0
    workers.send(0, assignment(1, 1))
    (answered,) = heard(workers, 1)
    assert isinstance(answered, Answered)
    assert first not in workers.pids()
    assert second in workers.pids()

    left = workers.pids()
    workers.close()
    until_s = time.monotonic() + 100
    while any(is_there(pid) for pid in left):
        assert time.monotonic() < until_s, "an actor is left"
        time.sleep(0.05)


def test_checkpoints_go_through_the_store_where_the_folder_is_not_shared(hire, paths):
    workers = hire(RaySlotConfig(node="fast"), RaySlotConfig(node="slow"), shared=False)
    assert workers.nodes() == [0, 1]
    early = assignment(0, 1)
    late = assignment(0, 2, early)
    for slot, each in ((0, early), (1, late), (0, late)):  # made on one node, gone on with on the other
        workers.send(slot, each)
        (answered,) = heard(workers, 1)
        assert answered.slot == slot
    assert (answered.answer.metric, answered.answer.again) == (10.0, True)
    paths.checkpoints.file(0, 1).write_bytes(b"torn")
    paths.checkpoints.file(0, 2).unlink()
    workers.send(1, assignment(1, 1))  # so that nothing is in its memory any more
    workers.send(1, late)
    _, lost = heard(workers, 2)
    assert isinstance(lost.answer, FailedAnswer)
    assert lost.answer.lost
    workers.send(1, replace(late, earlier=(None,)))  # as a controller does who looked where it comes from
    (remade,) = heard(workers, 1)
    assert (remade.answer.metric, remade.answer.again) == (10.0, False)
    assert paths.checkpoints.read(late.make).content == b'{"had": 10.0}'
    assert not list(paths.logs.iterdir())


def test_a_store_that_is_gone_is_no_trials_fault(hire):
    workers = hire(RaySlotConfig(node="fast"), shared=False)
    workers.nodes()
    workers._ray.kill(workers._store)
    workers.send(0, assignment(0, 1))
    (answered,) = heard(workers, 1)
    assert isinstance(answered.answer, FailedAnswer)
    assert answered.answer.no_room
    assert "the store of checkpoints does not answer" in answered.answer.why


def test_a_node_that_does_not_see_the_folder_says_so(hire, paths):
    shutil.rmtree(paths.checkpoints.folder)
    with pytest.raises(CannotStart, match=r"put the run on storage that all nodes share, or set ray\.shared"):
        hire(RaySlotConfig(node="fast")).nodes()


def test_what_cannot_be_trained_anywhere_is_said_at_once(hire):
    with pytest.raises(CannotStart, match="no_such_module"):
        hire(RaySlotConfig(labels={"kind": "fast"}), trial="no_such_module:make").nodes()


def test_a_node_that_is_not_there_is_waited_for_so_long(hire):
    with pytest.raises(CannotStart, match="none of the nodes is there"):
        hire(RaySlotConfig(node="nowhere"), wait_s=0.5).nodes()


def test_a_slot_for_which_there_is_no_room_is_waited_for_so_long(hire):
    with pytest.raises(CannotStart, match="no room for slots"):
        hire(RaySlotConfig(node="slow", count=2), wait_s=3.0).nodes()


def test_a_node_that_is_killed_in_the_middle_of_a_run_is_lost_with_what_it_was_at_and_may_come_again(
    ray, small, follows, rationed, tmp_path
):
    nodes = [ray.add_node("doomed", 1)]
    slots = tuple(RaySlotConfig(node=kind, labels={"kind": kind}) for kind in ("fast", "doomed"))
    engine, paths = RayConfig(ray.address, slots), RunPaths(tmp_path / "books")
    wanted, cluster = small(trials=4, terms=Terms(10, 200)), engine.cluster()
    # 20 parts each: the run is not over, and nodes have something to do, until the node is there again
    setup = WorkerSetup(rationed.trial, rationed.settings(20, step_s=STEP_S), 0, paths)
    spec = PopulationSpec(wanted.hypers, cluster, wanted.terms, AssignmentCosts(), Equal(STEP_S))

    def watch(status, events):
        if status.reports >= 6 and len(nodes) == 1:
            ray.kill_node(nodes[0])
            nodes.append(None)
        if any(isinstance(event, NodeFailed) for event in events):
            nodes[1] = ray.add_node("doomed", 1)
        elif len(nodes) == 2 and any(isinstance(event, Joined) for event in events):
            rationed.free.touch()

    done = control(
        spec,
        PopulationPolicy(FifoAllocation()),
        lambda: engine.workers(cluster, setup),
        paths,
        watch=watch,
    )
    ray.kill_node(nodes[1])
    timeline = list(done.timeline)
    assert done.complete
    assert [event.node for event in timeline if isinstance(event, NodeFailed)] == [1]
    assert [event.node for event in timeline if isinstance(event, Joined)] == [0, 1, 1]
    assert not [event for event in timeline if isinstance(event, TrialFailed)]  # nobody is blamed
    assert follows(timeline, wanted.hypers) == 4 * 20
    lost_s = next(event.at_s for event in timeline if isinstance(event, NodeFailed))
    assert any(event.slot == 1 and event.at_s > lost_s for event in timeline if isinstance(event, Reported))
