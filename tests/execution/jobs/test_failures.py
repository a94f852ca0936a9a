"""What goes wrong with jobs, and what becomes of them then."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from rota.core.cluster import Cluster, Node
from rota.core.errors import InputError, Stuck
from rota.core.timeline import NodeLost, Preempted
from rota.execution.folder import RealFolder
from rota.execution.jobs.assignments import SLICE
from rota.execution.jobs.status import is_of_jobs, read_jobs_status
from rota.execution.journal import read_journal
from rota.execution.ray_config import RayConfig, RaySlotConfig

LIMIT_S = 120


def workers_of(folder):
    """The processes of a run's workers: those that have a log of it open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{folder}/books/logs/slot" in str((process / "fd" / "2").readlink()):
                found.append(int(process.name))
    return sorted(found)


@pytest.mark.parametrize("gang", [1, 2])
def test_a_worker_that_is_killed_costs_what_it_was_at(locally, few, completions, tmp_path, gang):
    killed = []

    def watch(status):
        if status.assignments >= 2 and not killed:
            killed.append(workers_of(tmp_path)[0])
            os.kill(killed[0], signal.SIGKILL)

    outcome = locally(few(jobs=(("long", gang, 60, 0.0),)), watch=watch)
    assert killed
    (line,) = outcome.status.jobs
    assert (line.status, line.done, line.metric, line.failures) == ("finished", 60, 60.0, 1)
    assert sum(part.iterations for completed in completions() for part in completed.parts) == 60
    assert "the worker died" in line.why


ODD = """
    from rota.execution.jobs.idle import IdleJob, IdleJobFactory

    class Odd(IdleJob):
        def compute(self):
            super().compute()
            if self.done == self._seconds.get("fails_at"):
                raise ValueError("odd")

    class Site(IdleJobFactory):
        def open(self, job, kind, rank, size, meeting):
            return Odd(self._kinds[kind])

    def make(settings, seed) -> Site:
        return Site(settings)
"""


def test_a_job_that_always_fails_is_given_up_and_the_others_go_on(locally, few, trial_module):
    kinds = {"odd": {"compute_s": 0.005, "fails_at": 7}, "fine": {"compute_s": 0.005}}
    jobs = (("odd", 1, 40, 0.0), ("fine", 1, 40, 0.0), ("fine", 2, 20, 0.0))
    outcome = locally(few(jobs=jobs, kinds=kinds, site=trial_module(ODD), slice_s=0.02))
    assert outcome.complete
    odd, *fine = outcome.status.jobs
    assert (odd.status, odd.failures) == ("failed", 3)
    assert odd.done <= 7
    assert "ValueError: odd" in odd.why
    assert [line.status for line in fine] == ["finished", "finished"]
    assert outcome.status.record()["failed"] == 1


def test_one_of_a_group_that_fails_leaves_the_other_alone(locally, few, trial_module, completions):
    kinds = {"odd": {"fetch_s": 0.01, "compute_s": 0.001, "fails_at": 3}, "fine": {"compute_s": 0.01}}
    jobs = (("odd", 1, 20, 0.0), ("fine", 1, 20, 0.0))
    asked = few(jobs=jobs, kinds=kinds, site=trial_module(ODD), slots=1, scheduler="muri-s")
    odd, fine = locally(asked).status.jobs
    assert (odd.status, fine.status, fine.failures, fine.metric) == ("failed", "finished", 0, 20.0)
    assert any(len(completed.parts) == 2 for completed in completions())


def test_a_run_that_is_stopped_goes_on_where_it_was(locally, few, completions):
    stopped = locally(few(), asked_to_stop=lambda: len(completions()) >= 4)
    assert not stopped.complete
    before = len(completions())
    went_on = locally(few())
    assert (went_on.complete, went_on.restored > 0) == (True, True)
    done = Counter()
    for completed in completions():
        done.update({part.job: part.iterations for part in completed.parts})
    assert [done[job] for job in range(5)] == few().spec().iterations
    assert len(completions()) > before
    times = [completed.ended_s for completed in completions()]
    assert times == sorted(times)  # time stood still while nobody ran it


def test_a_journal_of_other_jobs_is_refused(locally, few):
    locally(few(jobs=(("short", 1, 5, 0.0),)))
    with pytest.raises(InputError, match="of another run than the configuration says"):
        locally(few(jobs=(("short", 1, 6, 0.0),)))


def test_a_scheduler_that_starts_no_job_is_told_so(locally, few):
    class Nobody(type(few().policy)):
        def plan(self, view):
            view.draft.jobs = 0
            return view.draft

    class Lazy(few):
        policy = Nobody()

    with pytest.raises(Stuck, match="nothing runs and nothing will happen, but 1 jobs wait"):
        locally(Lazy(jobs=(("short", 1, 5, 0.0),)))


def test_a_lost_node_is_not_the_fault_of_a_job(ray, few, on_engine, completions):
    """Two nodes of one slot; one is killed in the middle, and its job goes on where it was on the other."""
    extra, killed = ray.add_node("extra", 1), []
    nodes = tuple(RaySlotConfig(labels={"kind": kind}, node=kind) for kind in ("fast", "extra"))

    class Two(few):
        cluster = Cluster((Node(1, kind="cpu"), Node(1, kind="cpu")))

    def watch(status):
        if status.assignments >= 4 and not killed:
            killed.append(ray.kill_node(extra))

    asked = Two(jobs=(("long", 1, 150, 0.0), ("long", 1, 150, 0.0)))
    outcome = on_engine(asked, RayConfig(ray.address, nodes), watch=watch)
    found = [(line.status, line.failures, line.metric) for line in outcome.status.jobs]
    assert found == [("finished", 0, 150.0)] * 2
    events = list(outcome.timeline)
    assert [event.node for event in events if isinstance(event, NodeLost)] == [1]
    assert [event.job for event in events if isinstance(event, Preempted)] == [1]
    assert sum(part.iterations for completed in completions() for part in completed.parts) == 300


CONFIG = """
scheduler = "srtf"
site = "gated:make"
slice_s = 0.04

[workload]
trace = "jobs.csv"

[local]
slots = [{ count = 2, cores = 0 }]

[kinds.a]
compute_s = 0.01
gate = "GATE"
"""
GATED = """
    import time
    from pathlib import Path
    from rota.execution.jobs.idle import IdleJob, IdleJobFactory

    class Gated(IdleJob):
        def compute(self):
            if not Path(self._seconds["gate"]).exists():
                super().compute()

    class Site(IdleJobFactory):
        def open(self, job, kind, rank, size, meeting):
            return Gated(self._kinds[kind])

    def make(settings, seed) -> Site:
        return Site(settings)
"""
TRACE = "id,submit_s,gpus,model,iterations,duration_s,priority\n" + "".join(
    f"j{number},{number / 10},{1 + (number == 3)},a,{1000 + 100 * number},10,0\n" for number in range(4)
)
KILLS = 5


def rota(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "rota", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def assignments_in(folder):
    journal = RealFolder(folder).paths(0).journal
    if not journal.exists() or not journal.stat().st_size:
        return 0
    return sum(entry.kind == SLICE for entry in read_journal(journal))


def test_nothing_is_lost_however_often_the_controller_is_killed(tmp_path, trial_module):
    """Jobs take long until a gate is opened, so none is over before all kills."""
    trial_module(GATED, "gated")
    gate, folder = tmp_path / "gate", tmp_path / "run"
    (tmp_path / "jobs.toml").write_text(CONFIG.replace("GATE", str(gate)))
    (tmp_path / "jobs.csv").write_text(TRACE)
    words = ["run", tmp_path / "jobs.toml", "--out", folder]
    for number in range(KILLS):
        before, controller = assignments_in(folder), rota(*words)
        until_s = time.monotonic() + LIMIT_S
        while assignments_in(folder) <= before + number:
            assert controller.poll() is None, controller.stderr.read()
            assert time.monotonic() < until_s
            time.sleep(0.01)
        controller.kill()
        controller.communicate()
        words = ["run", "--resume", folder]
    journal = RealFolder(folder).paths(0).journal
    assert is_of_jobs(journal)
    assert read_jobs_status(journal)[1] == "stopped"
    gate.touch()
    last = rota(*words, "--json")
    out, err = last.communicate(timeout=LIMIT_S)
    assert last.returncode == 0, err
    found = json.loads(out)
    assert (found["complete"], found["finished"], found["failed"]) == (True, 4, 0)
    assert [job["metric"] for job in found["jobs"]] == [1000, 1100, 1200, 1300]
    done = Counter()
    for entry in read_journal(journal):
        if entry.kind == SLICE:
            done.update({part["job"]: part["iterations"] for part in entry.body["parts"]})
    assert [done[job] for job in range(4)] == [1000, 1100, 1200, 1300]
    status, phase = read_jobs_status(journal)
    assert (phase, status.record()["finished"]) == ("complete", 4)
