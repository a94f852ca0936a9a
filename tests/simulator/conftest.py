"""An independent referee: it walks a timeline in plain Python and objects to whatever must not happen."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from rota.core.cluster import Cluster
from rota.core.costs import CostModel
from rota.core.timeline import (
    Arrived,
    AttemptFailed,
    Failed,
    Finished,
    Migrated,
    NodeJoined,
    NodeLost,
    Preempted,
    Resized,
    Retimed,
    RolledBack,
    Started,
    Timeline,
)
from rota.workload.jobs import Workload


@dataclass
class Life:
    """What the referee knows of one job."""

    left: float
    arrived: bool = False
    ended: bool = False
    slots: tuple[int, ...] = ()
    pace_s: float = 0.0
    stall_s: float = 0.0
    since_s: float = 0.0
    starts: int = 0
    failures: int = 0
    done: float = 0.0
    lost: float = 0.0


@dataclass
class Referee:
    jobs: Workload
    cluster: Cluster
    cost: CostModel
    sharing: int
    lives: list[Life] = field(default_factory=list)

    def watch(self, timeline: Timeline) -> None:
        table = self.cluster.table()
        self.up = [bool(up) for up in table[4]]
        self.node_of = self.cluster.slot_nodes().tolist()
        self.lives = [Life(float(work)) for work in self.jobs.iterations]
        now_s = 0.0
        for event in timeline:
            assert event.at_s >= now_s, "time runs backwards"
            if event.at_s > now_s:
                self.check_slots()
                now_s = event.at_s
            self.see(event)
        assert all(life.ended for life in self.lives), "a job has not finished"

    def see(self, event: object) -> None:  # noqa: C901 (one case per kind of event)
        match event:
            case NodeLost(node=node):
                self.up[node] = False
            case NodeJoined(node=node):
                self.up[node] = True
            case Arrived(at_s, job):
                assert not self.lives[job].arrived
                # With the `interval` cost, arrivals that are all but simultaneous are one event.
                assert at_s == pytest.approx(self.jobs.submit_s[job], rel=1e-8)
                self.lives[job].arrived = True
            case Started(at_s, job, pace_s, slots):
                assert not self.lives[job].slots, "started while running"
                self.put(job, at_s, pace_s, slots)
            case Migrated(at_s, job, pace_s, slots):
                assert self.lives[job].slots, "moved while waiting"
                assert self.lives[job].slots != slots, "moved to where it was"
                self.work(job, at_s)
                self.put(job, at_s, pace_s, slots)
            case Resized(at_s, job, pace_s, slots):
                assert self.lives[job].slots, "resized while waiting"
                assert len(self.lives[job].slots) != len(slots), "resized to what it was"
                self.work(job, at_s)
                self.put(job, at_s, pace_s, slots)
            case Retimed(at_s, job, pace_s):
                assert self.lives[job].slots, "paced while waiting"
                self.work(job, at_s)
                self.lives[job].pace_s = pace_s
            case Preempted(at_s, job, remaining):
                assert self.lives[job].slots, "paused while waiting"
                self.stop(job, at_s, remaining)
            case AttemptFailed(at_s, job, remaining):
                assert self.lives[job].slots, "failed while waiting"
                self.stop(job, at_s, remaining)
                self.lives[job].failures += 1
            case Failed(at_s, job, remaining):
                assert not self.lives[job].ended
                self.stop(job, at_s, max(remaining, self.lives[job].left if self.cost.each_instant else 0.0))
                self.lives[job].failures += 1
                self.lives[job].ended = True
            case RolledBack(at_s, job, iterations):
                assert self.lives[job].slots, "lost work while waiting"
                assert iterations > 0.0
                self.work(job, at_s)
                if not self.cost.each_instant:  # which charges start-ups that the timeline does not say
                    self.lives[job].left += iterations
                self.lives[job].lost += iterations
            case Finished(at_s, job):
                life = self.lives[job]
                assert life.slots, "finished while waiting"
                assert not life.ended
                self.work(job, at_s)
                if not self.cost.each_instant:
                    asked = float(self.jobs.iterations[job])
                    assert abs(life.left) <= 1e-6 * asked + 1e-6, "work done is not work asked"
                    assert life.done == pytest.approx(asked + life.lost, rel=1e-6, abs=1e-6)
                life.ended, life.slots = True, ()

    def put(self, job: int, at_s: float, pace_s: float, slots: tuple[int, ...]) -> None:
        life = self.lives[job]
        assert life.arrived
        assert not life.ended
        sizes = {size for size, _ in self.jobs.sizes[job]} if self.jobs.sizes else set()
        sizes.add(self.jobs.gpus[job] * self.cluster.slots_per_gpu)
        assert len(set(slots)) == len(slots), "a slot twice"
        assert len(slots) in sizes, "not the whole gang"
        life.slots, life.pace_s, life.since_s = slots, pace_s, at_s
        life.stall_s = float(self.jobs.startup_s[job])
        life.starts += 1

    def stop(self, job: int, at_s: float, remaining: float) -> None:
        life = self.lives[job]
        self.work(job, at_s)
        if not self.cost.each_instant:
            assert remaining == pytest.approx(life.left, rel=1e-6, abs=1e-6)
        assert remaining >= life.left - 1e-6
        life.left, life.slots = remaining, ()

    def work(self, job: int, now_s: float) -> None:
        life = self.lives[job]
        elapsed_s = now_s - life.since_s
        productive_s = max(elapsed_s - life.stall_s, 0.0)
        life.stall_s = max(life.stall_s - elapsed_s, 0.0)
        life.left -= productive_s / life.pace_s
        life.done += productive_s / life.pace_s
        life.since_s = now_s

    def check_slots(self) -> None:
        """Nobody is on a slot that is gone; a slot has one job, or a group that shares all of its slots."""
        on: dict[int, list[Life]] = {}
        alone: set[int] = set()
        for life, has_stages in zip(self.lives, self.jobs.has_stages.tolist(), strict=True):
            for slot in life.slots:
                assert self.up[self.node_of[slot]], "runs on a node that is gone"
                on.setdefault(slot, []).append(life)
            alone.update(() if has_stages else life.slots)
        assert all(len(on[slot]) == 1 for slot in alone), "a job without stages shares"
        for sharers in on.values():
            assert len(sharers) <= self.sharing, "a slot is used twice"
            if self.sharing > 2:
                assert len({life.slots for life in sharers}) == 1, (
                    "shares a slot with a job that is not of its group"
                )


@pytest.fixture(scope="session")
def referee() -> Callable[..., Referee]:
    """Watch a timeline: `referee(jobs, cluster, cost, sharing, timeline)`."""

    def watch(jobs: Workload, cluster: Cluster, cost: CostModel, sharing: int, timeline: Timeline) -> Referee:
        found = Referee(jobs, cluster, cost, sharing)
        found.watch(timeline)
        return found

    return watch
